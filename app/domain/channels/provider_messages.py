"""Finds messages by the ids that providers gave them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from app.database import rows
from app.domain.work.units import Unit
from app.errors import NotFound
from app.models import sets
from app.models.channels import Channel
from app.models.contacts import Contact
from app.models.conversations import Conversation, Message
from app.models.sets import Key


class Name(NamedTuple):
    """A message of a channel. `message_id`: our own id, if the provider reported it."""

    channel_id: str
    provider_id: str
    message_id: str | None = None


class MessageIds(NamedTuple):
    """The ids of a message, and of its conversation, contact and workspace."""

    workspace_id: str
    message_id: str
    conversation_id: str
    contact_id: str


def look_up(unit: Unit, names: Sequence[Name]) -> list[MessageIds]:
    """Looks up the messages with one statement, and notes the results in the unit. Locks nothing.

    Returns the ids of the messages that exist.
    """
    if not names:
        return []
    found = rows(
        """
        SELECT sought.number, named.*, talk.contact_id
        FROM unnest(%s::text[], %s::text[], %s::text[]) WITH ORDINALITY
            AS sought(channel_id, provider_id, message_id, number)
        CROSS JOIN LATERAL (
            SELECT workspace_id, id, conversation_id FROM messages
            WHERE channel_id = sought.channel_id AND provider_id = sought.provider_id
            UNION ALL
            SELECT workspace_id, id, conversation_id FROM messages
            WHERE id = sought.message_id AND channel_id = sought.channel_id AND direction = 'out'
            LIMIT 1) AS named
        CROSS JOIN LATERAL (SELECT contact_id FROM conversations WHERE id = named.conversation_id LIMIT 1) AS talk
        """,
        tuple(map(list, zip(*names, strict=True))),
    )
    places = {names[number - 1]: MessageIds(*place) for number, *place in found}
    unit.notes |= {name: places.get(name) for name in names}
    return list(places.values())


def find(unit: Unit, channel: Channel, provider_id: str, message_id: str | None = None) -> Message | None:
    """Returns the message, locked with its contact and conversation; None if none. Raises Busy."""
    name = Name(channel.id, provider_id, message_id)
    if name not in unit.notes:
        look_up(unit, [name])
    place: MessageIds | None = unit.notes[name]
    if place is None:
        return None
    for each in keys([place]):
        unit.get(*each)
    return unit.get(Message, channel.workspace_id, "id", place.message_id)


def contact_and_conversation(unit: Unit, message: Message) -> tuple[Contact, Conversation]:
    """Returns the message's contact and conversation. Raises NotFound if the contact was deleted."""
    conversation = unit.get(Conversation, message.workspace_id, "id", message.conversation_id)
    # After a merge, the conversation has the new contact at once; its messages follow a little later.
    contact = unit.get(Contact, message.workspace_id, "id", conversation.contact_id) if conversation else None
    if contact is None or conversation is None:
        raise NotFound()
    return contact, conversation


def note(unit: Unit, channel: Channel, provider_id: str, message: Message) -> None:
    """Notes the message, which the unit creates, under the provider's id."""
    place = MessageIds(message.workspace_id, message.id, message.conversation_id, message.contact_id)
    unit.notes[Name(channel.id, provider_id)] = place


def keys(places: Iterable[MessageIds]) -> list[Key]:
    """Returns the keys of the messages, their conversations and their contacts."""
    return [
        sets.key(model, place.workspace_id, "id", value)
        for place in places
        for model, value in (
            (Contact, place.contact_id),
            (Conversation, place.conversation_id),
            (Message, place.message_id),
        )
    ]

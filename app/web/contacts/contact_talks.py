"""Talks: a contact's latest conversations, for the contact's page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.domain.conversations import messages
from app.domain.people import members, message_access
from app.models.channels import Channel
from app.models.contacts import Contact
from app.models.conversations import Conversation, Message
from app.web.access import viewer, workspace_id

MOST_MESSAGES, MOST_CONVERSATIONS = 8, 10


@dataclass(frozen=True, slots=True)
class Talks:
    """A contact's conversations, newest first, and the last `messages` of the newest one, in order.

    `channels` and `people`: names of channels and members, by identifier.
    """

    conversations: Sequence[Conversation]
    messages: Sequence[Mapping[str, Any]]
    channels: Mapping[str, str]
    people: Mapping[str, str]


def of_contact(contact: Contact) -> Talks:
    """Returns the talks with the contact; none for viewers who may not read messages."""
    if not viewer().may(message_access.SEE):
        return Talks([], [], {}, {})
    found = Conversation.of_contact(workspace_id(), contact.id, MOST_CONVERSATIONS)
    if not found:
        return Talks([], [], {}, {})
    said = Message.latest(found[0].id, None, None, MOST_MESSAGES)
    wrote = members.of_workspace(workspace_id()) if any(each.direction == "out" for each in said) else ()
    people = {person.member_id: person.email.partition("@")[0] for person in wrote}
    channel_ids = {conversation.channel_id for conversation in found}
    channels = {each.id: each.name for each in Channel.select().where(Channel.id.in_(list(channel_ids)))}
    return Talks(found, [messages.represent(each) for each in reversed(said)], channels, people)

"""Peers: the addresses at a provider to which a conversation's messages are sent.

Callers of these functions have locked the contact.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Any, NamedTuple

from app.database import rows
from app.domain.conversations import conversations
from app.domain.work.changes import Change
from app.domain.work.units import Unit
from app.models import sets
from app.models.contacts import Contact
from app.models.conversations import Conversation

# The most conversations that `readdress` changes. Older ones are rarely used.
LATEST = 500


class Peer(NamedTuple):
    """A contact's address (`peer`) at a channel's provider."""

    workspace_id: str
    contact_id: str
    channel_id: str
    peer: str


def prefetch(unit: Unit, wanted: Sequence[Peer]) -> None:
    """Reads what `conversation_with` will return for these peers, in two statements in all."""
    unit.notes |= _latest_with(wanted)
    found = [(peer.workspace_id, unit.notes[peer]) for peer in wanted]
    unit.read(sets.key(Conversation, workspace_id, "id", each) for workspace_id, each in found if each)


def conversation_with(
    change: Change,
    contact: Contact,
    channel_id: str,
    peer: str,
    *,
    reopens: bool | None,
    referral: Mapping[str, Any] | None = None,
) -> Conversation:
    """Returns the latest conversation with the peer on the channel; opens one if there is none.

    If the latest one is closed and `reopens` is true, it is reopened; if false, a new one follows it; if None, it stays
    closed. Stores `referral` in the conversation unless None. Raises Busy.
    """
    unit, sought = change.unit, Peer(contact.workspace_id, contact.id, channel_id, peer)
    if sought not in unit.notes:
        is_new = unit.is_new(Contact, contact.workspace_id, contact.id)
        unit.notes |= {sought: None} if is_new else _latest_with([sought])
    found = unit.notes[sought]
    latest = unit.get(Conversation, contact.workspace_id, "id", found) if found else None
    if latest is None or (latest.status == "closed" and reopens is False):
        opened = conversations.open_on(change, contact, channel_id, referral=referral)
        opened = conversations.alter(unit, opened, peer=peer)
        unit.notes |= {sought: opened.id, ("followed by", opened.id): latest and latest.id}
        if latest is not None and latest.broadcast_id is not None:
            conversations.alter(unit, latest, broadcast_id=None)  # answered, in the new conversation
        latest = opened
    elif latest.peer is None:
        latest = conversations.alter(unit, latest, peer=peer)
    if referral is not None:
        latest = conversations.alter(unit, latest, referral=referral)
    return conversations.reopen(change, contact, latest) if reopens else latest


def followed_by(unit: Unit, conversation: Conversation) -> str | None:
    """Returns the closed conversation that this new one follows; None if there is none."""
    return unit.notes.get(("followed by", conversation.id))


def move(unit: Unit, conversation: Conversation, contact: Contact) -> Conversation:
    """Moves the conversation to the contact; it becomes the latest with its peer if none is later."""
    sought = Peer(contact.workspace_id, contact.id, conversation.channel_id, conversation.peer or "")
    if sought not in unit.notes:
        unit.notes |= _latest_with([sought])
    found = unit.notes[sought]
    latest = unit.get(Conversation, contact.workspace_id, "id", found) if found else None
    if latest is None or conversations.is_later(conversation, latest):
        unit.notes[sought] = conversation.id
    return conversations.move(unit, conversation, contact)


def readdress(unit: Unit, contact: Contact, channel_id: str, formers: Collection[str], peer: str) -> None:
    """Sets `peer` on the contact's latest conversations with `formers`, at most LATEST. Raises Busy."""
    found = rows(
        """
        SELECT id FROM conversations WHERE contact_id = %s AND channel_id = %s AND peer = ANY(%s)
        ORDER BY coalesce(last_message_at, created_at) DESC, id DESC LIMIT %s
        """,
        (contact.id, channel_id, list(formers), LATEST),
    )
    unit.read(sets.key(Conversation, contact.workspace_id, "id", conversation_id) for (conversation_id,) in found)
    stored = [unit.get(Conversation, contact.workspace_id, "id", conversation_id) for (conversation_id,) in found]
    for talk in {each.id: each for each in (*filter(None, stored), *unit.changed(Conversation))}.values():
        if (talk.contact_id, talk.channel_id) == (contact.id, channel_id) and talk.peer in formers:
            move(unit, conversations.alter(unit, talk, peer=peer), contact)


def _latest_with(wanted: Sequence[Peer]) -> Mapping[Hashable, str | None]:
    """Returns the stored latest conversation with each peer. One without a peer matches any peer."""
    if not wanted:
        return {}
    found = rows(
        """
        SELECT wanted.*, (
            SELECT id FROM conversations
            WHERE conversations.contact_id = wanted.contact_id AND conversations.channel_id = wanted.channel_id
                AND coalesce(conversations.peer, wanted.peer) = wanted.peer
            ORDER BY coalesce(last_message_at, created_at) DESC, id DESC LIMIT 1)
        FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[])
            AS wanted(workspace_id, contact_id, channel_id, peer)
        """,
        tuple(map(list, zip(*wanted, strict=True))),
    )
    return {Peer(*peer): conversation_id for *peer, conversation_id in found}

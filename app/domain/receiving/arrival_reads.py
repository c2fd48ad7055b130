"""Reads the rows that a batch of arrivals needs, with a few statements for any number of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from app.channels.inbound import Arrival, Blocked, Echoed, Moved, Received
from app.domain.channels import provider_messages
from app.domain.channels.provider_messages import Name, Place
from app.domain.conversations import peers
from app.domain.conversations.peers import Peer
from app.domain.receiving import senders
from app.domain.work.units import Unit
from app.models import sets
from app.models.channels import Channel
from app.models.contacts import Contact
from app.models.conversations import Conversation
from app.models.identities import Identity
from app.models.runs import Run
from app.models.sets import Key

Items = Sequence[tuple[Channel, Arrival]]


def needs(items: Items) -> Iterator[Key]:
    """Yields the keys of the senders' identities, through which the unit also locks their contacts."""
    for channel, item in items:
        if isinstance(item, (Received, Blocked)):
            yield senders.key(channel, item.sender)
        elif isinstance(item, Echoed):
            yield senders.key(channel, item.recipient)


def read(items: Items, unit: Unit) -> None:
    """Reads the messages, contacts, conversations and waiting runs of the items.

    Skips rows that another transaction has locked.
    """
    names = [_name(channel, item) for channel, item in items if not isinstance(item, (Blocked, Moved))]
    places = provider_messages.look_up(unit, list(dict.fromkeys(names)))
    contacts = [_contact(place) for place in places]
    unit.read([*contacts, *_phones(items, unit)])
    # Do not lock a row whose contact another transaction has locked: that transaction may wait for the row.
    free = [place for place in places if unit.is_free(_contact(place))]
    unit.read(provider_messages.keys(free))
    wanted = list(dict.fromkeys(_peers(items, unit)))
    peers.prefetch(unit, wanted)
    unit.read(_runs(wanted, unit))


def _name(channel: Channel, item: Arrival) -> Name:
    assert not isinstance(item, (Blocked, Moved))
    return Name(channel.id, item.provider_id, getattr(item, "message_id", None))


def _contact(place: Place) -> Key:
    return sets.key(Contact, place.workspace_id, "id", place.contact_id)


def _phones(items: Items, unit: Unit) -> Iterator[Key]:
    """Yields the keys of phone numbers of senders who are not known yet."""
    for channel, item in items:
        if isinstance(item, (Received, Echoed)) and item.phone is not None:
            identity = senders.key(channel, item.sender if isinstance(item, Received) else item.recipient)
            if unit.is_free(identity) and unit.get(*identity) is None:
                yield from senders.phone_keys(channel.workspace_id, item.phone)


def _peers(items: Items, unit: Unit) -> Iterator[Peer]:
    for (channel, item), identity in zip(items, map(_identity, items), strict=True):
        if identity is None or not isinstance(item, (Received, Echoed)) or not unit.is_free(identity):
            continue
        found = unit.get(Identity, *identity[1:])
        if found is not None and unit.is_free(sets.key(Contact, channel.workspace_id, "id", found.contact_id)):
            yield Peer(channel.workspace_id, found.contact_id, channel.id, item.peer)


def _identity(entry: tuple[Channel, Arrival]) -> Key | None:
    return next(needs([entry]), None)


def _runs(wanted: Sequence[Peer], unit: Unit) -> Iterator[Key]:
    for peer in wanted:
        if (conversation_id := unit.notes[peer]) is None:
            continue
        key = sets.key(Conversation, peer.workspace_id, "id", conversation_id)
        conversation = unit.get(Conversation, *key[1:]) if unit.is_free(key) else None
        if conversation is not None and conversation.waiting_run_id is not None:
            yield sets.key(Run, peer.workspace_id, "id", conversation.waiting_run_id)

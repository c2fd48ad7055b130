"""Streams: turns a batch of updates into the bytes that each listener is sent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from app.domain.channels import chats
from app.domain.insight.updates import StreamPosition, Update
from app.domain.people import message_access
from app.live import frames, representations
from app.live.listeners import Listener, Pass
from app.live.representations import Document
from app.realtime import Sign

Documents = Mapping[tuple[str, str], Document]


@dataclass(frozen=True, slots=True)
class Parcel:
    """Bytes, and the listeners to send them to."""

    data: bytes
    listeners: Sequence[Listener]


def parcels(updates: Sequence[Update], behind: StreamPosition, listeners: Iterable[Listener]) -> list[Parcel]:
    """Returns the updates as parcels for these listeners, all of one workspace.

    `behind` is the place after the updates. A resource that changed several times is sent once, in its current state.
    """
    latest = last_of_each(updates)
    found = representations.load(latest)
    members, visitors = _apart(listeners)
    made: list[Parcel] = []
    if members:
        made += _to_members(latest, behind, found, members)
    if visitors and any(kind in ("message", "conversation") for kind, _ in found):
        made += _to_visitors(latest, behind, found, visitors)
    return made


def last_of_each(updates: Sequence[Update]) -> list[Update]:
    """Returns only the last update of each resource, in order."""
    last = {(update.kind, update.subject_id): number for number, update in enumerate(updates)}
    return [update for number, update in enumerate(updates) if last[update.kind, update.subject_id] == number]


def signals(sign: Sign, listeners: Iterable[Listener]) -> list[Parcel]:
    """Returns the sign as parcels for the listeners that may see it, all of one workspace."""
    members, visitors = _apart(listeners)
    others = [each for each in members if each.admitted.actor_id != sign.author_id]
    made = [Parcel(frames.event(sign.kind, sign.data), others)] if others else []
    if sign.kind == "typing" and sign.peer is not None:
        # Visitors are not told which member is typing.
        theirs = [each for each in visitors if _is_theirs(each, sign)]
        made += [Parcel(frames.event("typing", {"author": {"type": sign.author_type}}), theirs)] if theirs else []
    return made


def _apart(listeners: Iterable[Listener]) -> tuple[list[Listener], list[Listener]]:
    members: list[Listener] = []
    visitors: list[Listener] = []
    for each in listeners:
        (members if each.admitted.channel_id is None else visitors).append(each)
    return members, visitors


def _to_members(
    updates: Sequence[Update], behind: StreamPosition, found: Documents, members: Iterable[Listener]
) -> Iterator[Parcel]:
    texts = [(update, text) for update in updates if (text := _text(update, found))]
    by_actor: dict[str, list[Listener]] = defaultdict(list)
    for each in members:
        by_actor[each.admitted.actor_id].append(each)
    for streams in by_actor.values():
        admitted = streams[0].admitted  # all streams of an actor are sent the same bytes
        if theirs := [(update, text) for update, text in texts if _is_shown(update, admitted)]:
            yield Parcel(_placed(theirs, behind, admitted), streams)


def _text(update: Update, found: Documents) -> bytes:
    document = found.get((update.kind, update.subject_id))
    if document is None and update.kind == "note":  # deleted: notes are the only resources that members can delete
        return frames.event("note", {"id": update.subject_id, "deleted": True})
    return frames.event(update.kind, document.shown) if document else b""


def _is_shown(update: Update, admitted: Pass) -> bool:
    is_theirs = update.actor_id in (None, admitted.actor_id)
    return is_theirs and (admitted.kinds is None or update.kind in admitted.kinds)


def _to_visitors(
    updates: Sequence[Update], behind: StreamPosition, found: Documents, visitors: Iterable[Listener]
) -> Iterator[Parcel]:
    peers = representations.peers(found)
    by_peer: dict[tuple[str, str | None] | None, list[tuple[Update, Document]]] = defaultdict(list)
    for update in updates:
        document = found.get((update.kind, update.subject_id))
        if document and _is_for_visitors(update, document):
            by_peer[_peer(update, document, peers)].append((update, document))
    for each in visitors:
        visitor_id, channel_id = each.admitted.actor_id, str(each.admitted.channel_id)
        if theirs := by_peer.get((channel_id, each.admitted.peer)):
            texts = [(update, _for_visitor(visitor_id, update, document)) for update, document in theirs]
            yield Parcel(_placed(texts, behind, each.admitted), [each])


def _is_for_visitors(update: Update, document: Document) -> bool:
    """Whether visitors see the update: a message for them, or that their messages were read."""
    if update.kind == "message":
        return message_access.is_shown_to_visitor(document.row)
    return update.kind == "conversation" and document.row.unread == 0


def _peer(
    update: Update, document: Document, peers: Mapping[str, tuple[str, str | None]]
) -> tuple[str, str | None] | None:
    """Returns the channel and the peer that the update is for; None if unknown."""
    if update.kind == "conversation":
        return document.row.channel_id, document.row.peer
    return peers.get(document.row.conversation_id)


def _for_visitor(visitor_id: str, update: Update, document: Document) -> bytes:
    if update.kind == "conversation":
        return frames.event("read", {"unread": 0})
    return frames.event("message", chats.represent(visitor_id, document.row))


def _placed(texts: Sequence[tuple[Update, bytes]], behind: StreamPosition, admitted: Pass) -> bytes:
    """Joins the events, each with its place. The last one gets the place behind all updates."""
    placed = [frames.position_of(update.place, admitted) + text for update, text in texts[:-1]]
    return b"".join([*placed, frames.position_of(behind, admitted), texts[-1][1]])


def _is_theirs(listener: Listener, sign: Sign) -> bool:
    admitted = listener.admitted
    return (admitted.channel_id, admitted.peer) == (sign.channel_id, sign.peer) and admitted.actor_id != sign.author_id

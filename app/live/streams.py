"""Streams: what each listener is sent of a batch of updates."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from app.domain import chats
from app.domain.updates import Place, Update
from app.live import documents, frames
from app.live.documents import Document
from app.live.listeners import Listener
from app.models.conversations import Message
from app.realtime import Sign

Documents = Mapping[tuple[str, str], Document]


@dataclass(frozen=True, slots=True)
class Parcel:
    """Bytes for some listeners."""

    data: bytes
    listeners: Sequence[Listener]


def parcels(updates: Sequence[Update], behind: Place, listeners: Iterable[Listener]) -> list[Parcel]:
    """What these listeners, all of the workspace of the updates, are sent of them. The place `behind` is that after.

    A resource that changed several times is sent once, as it is now.
    """
    last = {(update.kind, update.subject_id): number for number, update in enumerate(updates)}
    latest = [update for number, update in enumerate(updates) if last[update.kind, update.subject_id] == number]
    found = documents.load(latest)
    members, visitors = _apart(listeners)
    made = []
    if members:
        texts = [(update, _text(update, found)) for update in latest]
        made += [
            Parcel(data, those)
            for actor_id, those in _by_actor(members, latest).items()
            if (data := _of_member(texts, behind, actor_id))
        ]
    if visitors and any(kind == "message" for kind, _ in found):
        made += _to_visitors(latest, behind, found, visitors)
    return made


def signals(sign: Sign, listeners: Iterable[Listener]) -> list[Parcel]:
    """What these listeners, all of the workspace of the sign, are sent of it."""
    members, visitors = _apart(listeners)
    others = [each for each in members if each.admitted.actor_id != sign.author_id]
    made = [Parcel(frames.event(sign.kind, sign.data), others)] if others else []
    if sign.kind == "typing" and sign.peer is not None:
        # Visitors are not told which member it is.
        theirs = [each for each in visitors if _is_theirs(each, sign)]
        made += [Parcel(frames.event("typing", {"author": {"type": sign.author_type}}), theirs)] if theirs else []
    return made


def _apart(listeners: Iterable[Listener]) -> tuple[list[Listener], list[Listener]]:
    members: list[Listener] = []
    visitors: list[Listener] = []
    for each in listeners:
        (members if each.admitted.channel_id is None else visitors).append(each)
    return members, visitors


def _by_actor(members: Sequence[Listener], updates: Sequence[Update]) -> Mapping[str, Sequence[Listener]]:
    """The members who are sent the same: all, under an empty name, but for those who have jobs among the updates."""
    actors = {update.actor_id for update in updates if update.actor_id is not None}
    if not actors:
        return {"": members}
    found: dict[str, list[Listener]] = defaultdict(list)
    for each in members:
        found[each.admitted.actor_id if each.admitted.actor_id in actors else ""].append(each)
    return found


def _text(update: Update, found: Documents) -> bytes:
    document = found.get((update.kind, update.subject_id))
    return frames.event(update.kind, document.shown) if document else b""


def _of_member(texts: Sequence[tuple[Update, bytes]], behind: Place, actor_id: str) -> bytes:
    return _placed(
        [(update, text) for update, text in texts if text and update.actor_id in (None, actor_id or None)], behind
    )


def _to_visitors(
    updates: Sequence[Update], behind: Place, found: Documents, visitors: Iterable[Listener]
) -> Iterator[Parcel]:
    peers = documents.peers(found)
    by_peer: dict[tuple[str | None, str | None] | None, list[tuple[Update, Message]]] = defaultdict(list)
    for update in updates:
        document = found.get((update.kind, update.subject_id))
        if update.kind == "message" and document and chats.is_shown(document.row):
            by_peer[peers.get(document.row.conversation_id)].append((update, document.row))
    for each in visitors:
        visitor_id = each.admitted.actor_id
        if theirs := by_peer.get((each.admitted.channel_id, each.admitted.peer)):
            texts = [(update, frames.event("message", chats.represent(visitor_id, row))) for update, row in theirs]
            yield Parcel(_placed(texts, behind), [each])


def _placed(texts: Sequence[tuple[Update, bytes]], behind: Place) -> bytes:
    """The events, each with its place; after the last, the listener has everything up to the place behind them."""
    if not texts:
        return b""
    placed = [frames.position_of(update.place) + text for update, text in texts[:-1]]
    return b"".join([*placed, frames.position_of(behind), texts[-1][1]])


def _is_theirs(listener: Listener, sign: Sign) -> bool:
    admitted = listener.admitted
    return (admitted.channel_id, admitted.peer) == (sign.channel_id, sign.peer) and admitted.actor_id != sign.author_id

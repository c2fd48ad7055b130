"""Updates: exactly the changes since a place in a stream, whatever the order of commits.

Triggers record an update in the transaction of the change. A place is the PostgreSQL snapshot whose transactions have
been delivered, so that a late commit is found, no matter how many others were delivered before it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from peewee import DataError

from app import metrics, sql
from app.database import count, rows

KEPT = timedelta(hours=1)
_SNAPSHOT = re.compile(r"[0-9]{1,19}:[0-9]{1,19}:([0-9]{1,19}(,[0-9]{1,19})*)?")
_TIMELINE = re.compile(r"([0-9a-f]{1,16}/[0-9A-F]{1,8})?")


class Forgotten(Exception):
    """Updates after this place may have been deleted, or the place was never given out."""


class MissedTooMuch(Forgotten):
    """More updates follow this place than the caller wants to read."""


@dataclass(frozen=True, slots=True)
class StreamPosition:
    """A place in a stream: everything visible in the snapshot `since` was delivered.

    With `until`, updates that only this later snapshot sees were delivered too, up to the id `last`. Snapshots
    belong to a PostgreSQL timeline: after a failover to a standby that lagged behind, the same numbers mean other
    transactions.
    """

    timeline: str
    since: str
    until: str | None = None
    last: int = 0

    def __str__(self) -> str:
        start = f"{self.timeline};{self.since}"
        return start if self.until is None else f"{start};{self.until};{self.last}"

    @classmethod
    def parse(cls, text: str) -> StreamPosition:
        """Returns the place that `str` converted to this text. Raises Forgotten for any other text."""
        timeline, _, numbers = text.partition(";")
        since, *rest = numbers.split(";")
        if not _TIMELINE.fullmatch(timeline) or not _SNAPSHOT.fullmatch(since):
            raise Forgotten
        if not rest:
            return cls(timeline, since)
        if len(rest) != 2 or not _SNAPSHOT.fullmatch(rest[0]) or not re.fullmatch("[0-9]{1,18}", rest[1]):
            raise Forgotten
        return cls(timeline, since, rest[0], int(rest[1]))


@dataclass(frozen=True, slots=True)
class Update:
    """A changed resource. `place`: the place directly after this update.

    `actor_id`: the only recipient, as for a member's own jobs; None if all members get the update.
    """

    place: StreamPosition
    workspace_id: str
    kind: str
    subject_id: str
    actor_id: str | None
    at: datetime


def present() -> StreamPosition:
    """Returns the place after everything that is committed now."""
    return StreamPosition(*rows("SELECT cluster_timeline(), pg_current_snapshot()::text")[0])


def read(place: StreamPosition, limit: int) -> tuple[Sequence[Update], StreamPosition]:
    """Returns up to `limit` updates after the place, of all workspaces, and the place after them.

    A place within a batch that became visible together reads to the end of the batch; any other reads up to the
    present. An update comes after the updates of transactions that had committed when it was recorded. Raises
    Forgotten.
    """
    return _read(sql.prepared("read_updates"), place, place.until, limit)


def read_missed(
    place: StreamPosition, until: StreamPosition, workspace_id: str, most: int, subject_ids: Sequence[str] | None = None
) -> Sequence[Update]:
    """Returns the updates of the workspace between two places, in the order of `read`.

    With `subject_ids`, only updates about these. Raises Forgotten, and MissedTooMuch if there are more than `most`.
    """
    if place.timeline != until.timeline:
        raise Forgotten
    missed: list[Update] = []
    while place != until:
        # Not prepared: a plan made for the workspace reads no updates of other workspaces.
        some, place = _read(
            sql.load("read_updates"), place, place.until or until.since, most + 1, workspace_id, subject_ids
        )
        missed += some
        if len(missed) > most:
            raise MissedTooMuch
    return missed


def _read(
    query: str,
    place: StreamPosition,
    until: str | None,
    limit: int,
    workspace_id: str | None = None,
    subject_ids: Sequence[str] | None = None,
) -> tuple[Sequence[Update], StreamPosition]:
    values = {
        "timeline": place.timeline,
        "since": place.since,
        "until": until,
        "last": place.last,
        "workspace_id": workspace_id,
        "subject_ids": None if subject_ids is None else sql.array(subject_ids),
        "limit": limit,
    }
    try:
        found = rows(query, values)
    except DataError as error:  # not a snapshot, although it looks like one
        raise Forgotten from error
    reached, is_forgotten = found[0][:2]
    if is_forgotten:
        raise Forgotten
    updates = [
        Update(StreamPosition(place.timeline, place.since, reached, id), workspace, kind, subject_id, actor_id, at)
        for *_, id, workspace, kind, subject_id, actor_id, at in found
        if id is not None
    ]
    if len(updates) == limit:
        return updates, updates[-1].place
    behind = StreamPosition(place.timeline, reached)
    if updates:
        updates[-1] = replace(updates[-1], place=behind)
    return updates, behind


def forget_old(limit: int = 5_000, most_batches: int = 20) -> int:
    """Deletes updates of transactions that ended an hour ago, in batches; returns how many.

    Run it every minute. A place stays valid for an hour, however long transactions are open. Safe to run concurrently.
    """
    [(writing_seconds,)] = rows(sql.load("note_horizon"), {"kept": KEPT})
    [(reading_seconds,)] = rows(sql.load("oldest_snapshot"))
    metrics.OLDEST_TRANSACTION_SECONDS.set(float(max(writing_seconds, reading_seconds)))
    deleted = 0
    for _ in range(most_batches):
        found = count(sql.load("forget_updates"), {"kept": KEPT, "limit": limit})
        deleted += found
        if found < limit:
            break
    return deleted

"""Parts: jobs that settle many chosen rows, a bounded number in each transaction.

A preview counts such rows exactly or not at all, one preview at a time in each workspace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from peewee import OperationalError
from psycopg2.errors import QueryCanceled

from app.database import rows
from app.domain.work import audit
from app.domain.work.changes import Change
from app.domain.work.units import Busy
from app.errors import Conflict
from app.models.jobs import Job

# The kinds of job that call `go_on`.
JOBS_IN_PARTS = ("jobs.replay_many", "jobs.discard_many", "deliveries.discard")
# The most rows that one part settles, and how many it examines to find them.
PART, LOOKED_AT = 200, 2_000
# The most unfinished jobs in parts that a workspace may ask for by API. On pages it is one.
MOST_UNFINISHED = 5
# Counting a million deliveries or jobs takes about a third of this.
LONGEST_SECONDS = 15
BUSY = "Another preview of this workspace is being counted. Try again when it has ended."
_UNDER_WAY = (
    "Many failed jobs or deliveries of this workspace are being replayed or discarded already. Wait until that has "
    "ended."
)


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of `table` that a job settles, and the `refusal` if counting them takes too long.

    `total`: the query that counts the rows. `following`: the query that examines the `looked_at` rows after the
    identifier `after`. It returns the last row examined, how many were examined, and the identifiers of the first
    `most` chosen rows, in order.
    """

    table: str
    total: str
    following: str
    values: Mapping[str, Any]
    refusal: str


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a job in parts. `count`: the rows when the job began; None before that."""

    count: int | None
    done: int


def go_on(change: Change, chosen: Rows, settle: Callable[[list[str]], int]) -> bool:
    """Settles the next rows; returns whether they were the last.

    The first part only counts them, and adds an audit entry with the number. `settle` gets the identifiers of locked
    rows and returns how many it has settled. Raises Busy if another transaction has locked the next one.
    """
    if change.progress is None:
        with in_time(chosen.refusal):
            [(total,)] = rows(chosen.total, chosen.values)
        audit.record(change, "workspace", change.workspace_id, {**change.payload, "count": total})
        change.keep(count=total, done=0, after="")
        return False
    reached, most = change.progress["after"], {"most": PART, "looked_at": LOOKED_AT}
    [(last, looked_at, found)] = rows(chosen.following, {**chosen.values, **most, "after": reached})
    locked = lock_first(chosen.table, found)
    done = settle(locked) if locked else 0
    if len(locked) < len(found) or len(found) == PART:
        reached, is_end = locked[-1], False
    else:
        reached, is_end = last or reached, looked_at < LOOKED_AT
    change.keep(**{**change.progress, "after": reached, "done": change.progress["done"] + done})
    return is_end


def lock_first(table: str, row_ids: Sequence[str]) -> list[str]:
    """Locks the rows up to the first one that another transaction has locked; returns their ids.

    Never waits. Raises Busy if the very first row is locked.
    """
    lock = f"SELECT id FROM {table} WHERE id = ANY(%s) ORDER BY id FOR NO KEY UPDATE SKIP LOCKED"
    locked = {id for (id,) in rows(lock, (list(row_ids),))}
    first = list(takewhile(locked.__contains__, row_ids))
    if row_ids and not first:
        raise Busy
    return first


def progress_of(job: Job) -> Progress | None:
    """Returns the progress of a job of JOBS_IN_PARTS; None for a job of any other kind."""
    if job.kind not in JOBS_IN_PARTS:
        return None
    kept = job.progress or {}
    return Progress(kept.get("count"), kept.get("done", 0))


def refuse_more(workspace_id: str, most: int = 1) -> None:
    """Raises Conflict if the workspace has `most` unfinished jobs in parts already."""
    of_kind = Job.kind.in_(JOBS_IN_PARTS) & Job.status.in_(["queued", "running"])
    if Job.in_workspace(workspace_id).where(of_kind).count() >= most:
        raise Conflict(_UNDER_WAY)


@contextmanager
def in_time(refusal: str) -> Iterator[None]:
    """Limits each statement of the block to LONGEST_SECONDS. Use it inside a transaction.

    Raises Conflict with `refusal` if a statement takes longer; the transaction must then roll back.
    """
    rows(f"SET LOCAL statement_timeout = '{LONGEST_SECONDS}s'")
    try:
        yield
    except OperationalError as error:
        if not isinstance(getattr(error, "orig", None), QueryCanceled):
            raise
        raise Conflict(refusal) from error
    rows("RESET statement_timeout")


def be_alone(workspace_id: str) -> None:
    """Reserves the counting of previews in the workspace until the transaction ends. Raises Conflict."""
    lock = "SELECT pg_try_advisory_xact_lock(hashtextextended(%s, 0))"
    if rows(lock, (f"previews:{workspace_id}",)) == [(False,)]:
        raise Conflict(BUSY)

"""Waking: makes rows mail when their time comes.

Until then, a row has a time and no `due_at`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from app import sql
from app.database import rows, which_hold
from app.mailbox.mail import Mail, ring

BATCH = 1_000


@dataclass(frozen=True, slots=True)
class Waiting:
    """Rows of a kind of mail that wait. `column` holds their time, and has a partial index.

    `ring` is called with the owners of rows that have become due; if None, the mail's bell rings for each owner.
    """

    mail: Mail
    column: str
    ring: Callable[[Collection[str]], object] | None = None

    @property
    def is_over(self) -> str:
        """The SQL condition that the time of any row has come."""
        return f"EXISTS (SELECT FROM {self.mail.table} WHERE {self.column} <= now())"


def wake(waiting: Waiting) -> list[str]:
    """Makes rows due once their time has come, up to BATCH, earliest first. Returns their owners.

    The caller rings for the owners. One process at a time wakes the rows of a table: in any other, the call returns []
    at once. Leaves locked rows to the next call.
    """
    query = _WAKE.format(mail=waiting.mail, column=waiting.column)
    statement = sql.prepared(f"wake_{waiting.mail.table}_{waiting.column}", query)
    return [owner for (owner,) in rows(statement, {"limit": BATCH})]


def wake_and_ring(waiting: Waiting) -> int:
    """Like `wake`, and rings for the owners. Returns how many rows became due."""
    owners = wake(waiting)
    if owners and waiting.ring is not None:
        waiting.ring(set(owners))
    elif owners:
        for owner in set(owners):
            ring(waiting.mail, owner)
    return len(owners)


def wake_all(*kinds: Waiting) -> int:
    """Calls `wake_and_ring` for each kind with a row whose time has come.

    Returns the size of the largest batch. If no row's time has come, this takes a single statement.
    """
    over = which_hold([waiting.is_over for waiting in kinds])
    return max((wake_and_ring(waiting) for waiting in kinds if waiting.is_over in over), default=0)


# One statement is one transaction, so a process that freezes keeps neither the lock nor the rows. A row that wakes late
# has been due for a second at most, because an earlier `due_at` could be below its mailbox's mark (`marks.py`). A
# microsecond for each row before it keeps their order.
_WAKE = """
    WITH waking AS MATERIALIZED (
        SELECT pg_try_advisory_xact_lock(hashtextextended('waking {mail.table}', 0)) AS is_ours
    ), woken AS (
        SELECT id, {column} AS at FROM {mail.table}
        WHERE {column} <= now() AND (SELECT is_ours FROM waking)
        ORDER BY {column} LIMIT %(limit)s FOR NO KEY UPDATE SKIP LOCKED
    ), placed AS (
        SELECT id, greatest(at, now() - interval '1 second' + number * interval '1 microsecond') AS due_at
        FROM (SELECT *, row_number() OVER (ORDER BY at) AS number FROM woken) AS numbered
    )
    UPDATE {mail.table} mail SET due_at = placed.due_at, {column} = NULL FROM placed WHERE mail.id = placed.id
    RETURNING mail.{mail.owner}
"""

"""Waking: a row that is to be mail later has a time and no `due_at`; when its time comes, it becomes mail."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from app import sql
from app.database import rows, which_hold
from app.mailbox.mail import Mail, ring

BATCH = 1_000


@dataclass(frozen=True, slots=True)
class Waiting:
    """Rows of a kind of mail that wait: `column` holds the time, and a partial index leads to those that have one.

    `ring` is called with the owners of rows that have become due; by default the mail's own bell rings for each.
    """

    mail: Mail
    column: str
    ring: Callable[[Collection[str]], object] | None = None

    @property
    def is_over(self) -> str:
        """The condition that the time of any row has come."""
        return f"EXISTS (SELECT FROM {self.mail.table} WHERE {self.column} <= now())"


def wake(waiting: Waiting) -> list[str]:
    """Makes rows whose time has come due, the earliest first, `BATCH` at most; returns the owner of each.

    One process at a time does so for a table; in any other the call returns nothing, at once. So does it skip a row
    that is locked, until the next call. The caller rings for the owners.
    """
    query = _WAKE.format(mail=waiting.mail, column=waiting.column)
    statement = sql.prepared(f"wake_{waiting.mail.table}_{waiting.column}", query)
    return [owner for (owner,) in rows(statement, {"limit": BATCH})]


def wake_and_ring(waiting: Waiting) -> int:
    """The same, and rings for the owners; returns how many rows it made due."""
    owners = wake(waiting)
    if owners and waiting.ring is not None:
        waiting.ring(set(owners))
    elif owners:
        for owner in set(owners):
            ring(waiting.mail, owner)
    return len(owners)


def wake_all(*kinds: Waiting) -> int:
    """The same for rows of all these kinds; returns the size of the largest batch. One statement while all wait."""
    over = which_hold([waiting.is_over for waiting in kinds])
    return max((wake_and_ring(waiting) for waiting in kinds if waiting.is_over in over), default=0)


# One statement, and so one transaction: a process that freezes holds neither the lock nor the rows.
_WAKE = """
    WITH waking AS MATERIALIZED (
        SELECT pg_try_advisory_xact_lock(hashtextextended('waking {mail.table}', 0)) AS is_ours
    ), woken AS (
        SELECT id, {column} AS at FROM {mail.table}
        WHERE {column} <= now() AND (SELECT is_ours FROM waking)
        ORDER BY {column} LIMIT %(limit)s FOR NO KEY UPDATE SKIP LOCKED
    )
    UPDATE {mail.table} mail SET due_at = woken.at, {column} = NULL FROM woken WHERE mail.id = woken.id
    RETURNING mail.{mail.owner}
"""

"""Outcomes that every kind of mail has. Each counts once, under the claim of its row.

A kind of mail whose outcomes change other columns too records them with statements of its own, under the same
condition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.database import count, rows
from app.mailbox.mail import Claimed, Mail
from app.mailbox.waking import Waiting

_HELD = "unnest(%(ids)s::text[], %(claims)s::int[]) AS held(id, claim)"
# With the list of identifiers, PostgreSQL reads only the partitions that contain them.
_IS_HELD = """
    mail.id = held.id AND mail.claim = held.claim AND mail.leased_until IS NOT NULL AND mail.due_at IS NOT NULL
    AND mail.id = ANY(%(ids)s)
"""


@dataclass(frozen=True, slots=True)
class PutOff:
    """A row to try again in `seconds`; if None, the row is not tried again and ceases to be mail.

    `is_spent`: whether the attempt counts in its `tries`. `problem`: why it failed, for tables with this column.
    """

    claimed: Claimed
    seconds: float | None
    is_spent: bool = True
    problem: str | None = None


def put_off(waiting: Waiting, batch: Sequence[PutOff]) -> None:
    """Postpones the rows, or ends them if `seconds` is None. Leaves out rows that are no longer held."""
    if not batch:
        return
    values = _held([each.claimed for each in batch])
    values["spent"] = [int(each.is_spent) for each in batch]
    values["seconds"] = [each.seconds for each in batch]
    values["problems"] = [each.problem for each in batch]
    count(
        f"""
        UPDATE {waiting.mail.table} mail
        SET due_at = NULL, leased_until = NULL, tries = mail.tries + spent,
            {waiting.column} = now() + seconds * interval '1 second'
            {", problem = held.problem" if any(values["problems"]) else ""}
        FROM unnest(%(ids)s::text[], %(claims)s::int[], %(spent)s::int[], %(seconds)s::float[], %(problems)s::text[])
            AS held(id, claim, spent, seconds, problem)
        WHERE {_IS_HELD}
        """,
        values,
    )


def release(mail: Mail, batch: Sequence[Claimed]) -> None:
    """Ends the leases, so that the rows can be claimed again at once.

    In a shared mailbox, the rows move behind the other due rows. Otherwise, rows that cannot be worked on yet would be
    claimed first again.
    """
    behind = "" if mail.exclusive else ", due_at = now()"
    count(f"UPDATE {mail.table} mail SET leased_until = NULL{behind} FROM {_HELD} WHERE {_IS_HELD}", _held(batch))


def drop(mail: Mail, batch: Sequence[Claimed], only: str = "true") -> set[str]:
    """Deletes the rows that are still held and meet the condition `only`; returns their identifiers.

    `only` is SQL that refers to a row as `mail`.
    """
    if not batch:
        return set()
    query = f"DELETE FROM {mail.table} mail USING {_HELD} WHERE {_IS_HELD} AND {only} RETURNING mail.id"
    return {id for (id,) in rows(query, _held(batch))}


def _held(batch: Sequence[Claimed]) -> dict[str, list[object]]:
    return {"ids": [row.id for row in batch], "claims": [row.claim for row in batch]}

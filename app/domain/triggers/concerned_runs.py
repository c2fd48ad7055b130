"""Concerned runs: a contact's runs that an event may end, wake or bring to their goal."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from app.database import rows

# If only the run can tell whether an event concerns it, only this many of the latest runs of a contact and an
# automation are compared. Runs that a condition excludes stay unfinished, and every event would compare them all again.
MOST_COMPARED = 100


class Look(NamedTuple):
    """A search for runs that an event may concern.

    `recorded_at`: when the event was recorded; None if this transaction recorded it.
    """

    number: int
    contact_id: str
    automation_id: str
    recorded_at: datetime | None
    happened_at: datetime


def unfinished(looks: Sequence[Look], limit: int) -> list[tuple[int, str]]:
    """Returns the first `limit` unfinished runs, as (number of the look, run id), in that order."""
    return list(rows(_UNFINISHED, _parameters(looks, limit)))


def latest_unfinished(looks: Sequence[Look], limit: int) -> list[tuple[int, str]]:
    """Like `unfinished`, but only the latest MOST_COMPARED runs of each look."""
    return _latest("runs.finished_at IS NULL", looks, limit)


def latest_awaiting(looks: Sequence[Look], limit: int) -> list[tuple[int, str]]:
    """Like `latest_unfinished`, for runs that wait for an event."""
    return _latest("runs.waits_for = 'event'", looks, limit)


def latest_aiming(looks: Sequence[Look], limit: int) -> list[tuple[int, str]]:
    """Like `latest_unfinished`, for runs that may still reach their goal."""
    return _latest("runs.goal_until >= look.happened_at", looks, limit)


def _latest(condition: str, looks: Sequence[Look], limit: int) -> list[tuple[int, str]]:
    return list(rows(_LATEST.format(condition=condition), {**_parameters(looks, limit), "most": MOST_COMPARED}))


def _parameters(looks: Sequence[Look], limit: int) -> dict[str, object]:
    names = ("numbers", "contacts", "automations", "times", "happened")
    return {"limit": limit, **dict(zip(names, map(list, zip(*looks, strict=True)), strict=True))}


# A run that an event started always counts: such runs start in the order of events, so the run is older than the look's
# event. Any other run counts only if it was created before that event was recorded. `pending_merges` adds the contacts
# that were merged into the look's contact, because their runs may not have been moved yet.
_UNFINISHED = """
    SELECT exit.number, runs.id
    FROM unnest(%(numbers)s::int[], %(contacts)s::text[], %(automations)s::text[], %(times)s::timestamptz[])
        AS exit(number, contact_id, automation_id, at)
    CROSS JOIN LATERAL (
        SELECT exit.contact_id AS id UNION ALL SELECT id FROM pending_merges WHERE kept_id = exit.contact_id
    ) AS own
    JOIN runs ON runs.contact_id = own.id AND runs.automation_id = exit.automation_id
        AND runs.finished_at IS NULL
        AND (runs.event_id IS NOT NULL OR runs.created_at <= coalesce(exit.at, 'infinity'))
    ORDER BY exit.number, runs.id LIMIT %(limit)s
"""

_LATEST = """
    SELECT look.number, run.id
    FROM unnest(%(numbers)s::int[], %(contacts)s::text[], %(automations)s::text[], %(times)s::timestamptz[],
        %(happened)s::timestamptz[]) AS look(number, contact_id, automation_id, at, happened_at)
    CROSS JOIN LATERAL (
        SELECT runs.id FROM (
            SELECT look.contact_id AS id UNION ALL SELECT id FROM pending_merges WHERE kept_id = look.contact_id
        ) AS own
        JOIN runs ON runs.contact_id = own.id AND runs.automation_id = look.automation_id
            AND {condition}
            AND (runs.event_id IS NOT NULL OR runs.created_at <= coalesce(look.at, 'infinity'))
        ORDER BY runs.id DESC LIMIT %(most)s
    ) AS run
    ORDER BY look.number, run.id LIMIT %(limit)s
"""

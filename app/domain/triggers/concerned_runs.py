"""Concerned runs: those of a contact and an automation that an event may end, be the goal of, or is awaited by."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from app.database import rows

# Runs of a contact and an automation that one event is compared with, if only the run can tell: the latest. Those that
# a condition excludes stay, and would otherwise be looked at again with each event, however many they are.
MOST_COMPARED = 100


class Look(NamedTuple):
    """What is looked for: runs for an event that happened then, recorded at that time if in an earlier transaction."""

    number: int
    contact_id: str
    automation_id: str
    recorded_at: datetime | None
    happened_at: datetime


def unfinished(looks: Sequence[Look], limit: int) -> list[tuple[int, str]]:
    """The first `limit` runs that have not finished, each with the number of its look; in their order."""
    return list(rows(_UNFINISHED, _parameters(looks, limit)))


def latest_unfinished(looks: Sequence[Look], limit: int) -> list[tuple[int, str]]:
    """The same; of each look the latest MOST_COMPARED."""
    return _latest("runs.finished_at IS NULL", looks, limit)


def latest_awaiting(looks: Sequence[Look], limit: int) -> list[tuple[int, str]]:
    """The first `limit` runs that wait for an event, likewise."""
    return _latest("runs.waits_for = 'event'", looks, limit)


def latest_aiming(looks: Sequence[Look], limit: int) -> list[tuple[int, str]]:
    """The first `limit` runs that may still reach their goal, likewise."""
    return _latest("runs.goal_until >= look.happened_at", looks, limit)


def _latest(condition: str, looks: Sequence[Look], limit: int) -> list[tuple[int, str]]:
    return list(rows(_LATEST.format(condition=condition), {**_parameters(looks, limit), "most": MOST_COMPARED}))


def _parameters(looks: Sequence[Look], limit: int) -> dict[str, object]:
    names = ("numbers", "contacts", "automations", "times", "happened")
    return {"limit": limit, **dict(zip(names, map(list, zip(*looks, strict=True)), strict=True))}


# Runs that events have started are started in the order of events, so they are older than the event at hand. Others may
# have been started since it was recorded. Runs of a contact that has become a part of this one may be still to follow.
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

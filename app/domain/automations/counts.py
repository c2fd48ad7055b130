"""Counts of automations: runs by status, refused starts, and counts by version and step.

`version_counts` reads the counts by version and step. Transactions append changes; the scheduler adds them up. A read
costs the same for any number of runs, and is exact, because it includes changes that have not been added up. Runs stay
counted when their rows are deleted.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from marshmallow import fields

from app.config import settings
from app.database import rows
from app.lib import clock
from app.lib.schemas import ResponseBody
from app.models.runs import STATUSES

RunCountsSchema = ResponseBody.from_dict({status: fields.Integer() for status in STATUSES}, name="RunCountsSchema")
# How many days runs of a version are counted by hour of creation. Older runs are counted by day.
HOURS_KEPT_DAYS = 7
# The key under which a step's log entries with warnings are counted.
WARNED = "warned"
IS_ANY_NEW = "EXISTS (SELECT FROM automation_deltas)"


def fold(limit: int = 10_000) -> int:
    """Adds up to `limit` changes to the counts; returns how many. Safe to run concurrently.

    Drops changes of deleted automations.
    """
    [(folded,)] = rows(_FOLD, {"limit": limit, **kept()})
    return int(folded)


def first_offered() -> tuple[datetime, datetime]:
    """Returns the first hour and the first day that counts are offered for. Both start a day in UTC."""
    midnight = clock.now().replace(hour=0, minute=0, second=0, microsecond=0)
    days = settings().history_retention_days
    return midnight - timedelta(days=min(days, HOURS_KEPT_DAYS)), midnight - timedelta(days=days)


def of(automation_ids: Collection[str], keys: Sequence[str] | None = None) -> dict[str, dict[str, int]]:
    """Returns the existing counts (of `keys`, if given) by automation and key, from one snapshot."""
    found: dict[str, dict[str, int]] = {automation_id: {} for automation_id in automation_ids}
    for automation_id, key, amount in rows(_READ, {"ids": list(automation_ids), "keys": keys and list(keys)}):
        found[automation_id][key] = amount
    return found


def runs_by_status(automation_ids: Collection[str]) -> dict[str, dict[str, int]]:
    """Returns the number of runs in every status, for each automation."""
    counted = of(automation_ids, STATUSES)
    return {id: {status: counts.get(status, 0) for status in STATUSES} for id, counts in counted.items()}


def refused(automation_id: str) -> dict[str, int]:
    """Returns how many starts were refused by reason (`reentry`, `depth`), without zeros."""
    counted = of([automation_id])[automation_id]
    return {key.removeprefix("refused:"): amount for key, amount in counted.items() if key.startswith("refused:")}


def warned(automation_id: str, version: int) -> dict[str, int]:
    """Returns how many log entries of each step have warnings, without zeros."""
    return dict(rows(_WARNED, {"id": automation_id, "version": version, "key": WARNED}))


def kept() -> dict[str, datetime]:
    """Returns the oldest times to keep, by grain: a day before the first offered, as clocks differ."""
    hour, day = first_offered()
    return {"hour": hour - timedelta(days=1), "day": day - timedelta(days=1)}


# Changes counts in the order of their keys, so that two schedulers do not deadlock.
_FOLD = """
    WITH taken AS (
        DELETE FROM automation_deltas
        WHERE id = ANY(ARRAY(SELECT id FROM automation_deltas ORDER BY id LIMIT %(limit)s FOR UPDATE SKIP LOCKED))
        RETURNING workspace_id, automation_id, version, hour, step, key, amount
    ), known AS MATERIALIZED (
        SELECT * FROM taken WHERE EXISTS (SELECT FROM automations WHERE automations.id = taken.automation_id)
    ), added AS (
        INSERT INTO automation_counts (workspace_id, automation_id, key, amount)
        SELECT workspace_id, automation_id, key, sum(amount) FROM known WHERE step = ''
        GROUP BY workspace_id, automation_id, key ORDER BY automation_id, key
        ON CONFLICT (automation_id, key) DO UPDATE SET amount = automation_counts.amount + excluded.amount
    ), added_by_version AS (
        INSERT INTO run_counts (workspace_id, automation_id, version, grain, starts_at, step, key, amount)
        SELECT workspace_id, automation_id, version, grain, starts_at, step, key, sum(amount)
        FROM known CROSS JOIN LATERAL (VALUES
            ('all', timestamptz 'epoch', true),
            ('day', date_trunc('day', hour, 'UTC'), hour >= %(day)s),
            ('hour', hour, hour >= %(hour)s)) AS time(grain, starts_at, is_kept)
        WHERE version IS NOT NULL AND is_kept
        GROUP BY workspace_id, automation_id, version, grain, starts_at, step, key HAVING sum(amount) <> 0
        ORDER BY automation_id, version, grain, starts_at, step, key
        ON CONFLICT (automation_id, version, grain, starts_at, step, key)
            DO UPDATE SET amount = run_counts.amount + excluded.amount
    )
    SELECT count(*) FROM taken
"""

_WARNED = """
    SELECT step, sum(amount)::bigint FROM (
        SELECT step, amount FROM run_counts
        WHERE automation_id = %(id)s AND version = %(version)s AND grain = 'all' AND key = %(key)s
        UNION ALL
        SELECT step, amount FROM automation_deltas
        WHERE automation_id = %(id)s AND version = %(version)s AND key = %(key)s) AS counted
    GROUP BY step ORDER BY step
"""

_READ = """
    SELECT automation_id, key, sum(amount)::bigint FROM (
        SELECT automation_id, key, amount FROM automation_counts WHERE automation_id = ANY(%(ids)s)
        UNION ALL
        SELECT automation_id, key, amount FROM automation_deltas
        WHERE automation_id = ANY(%(ids)s) AND step = '') AS counted
    WHERE %(keys)s::text[] IS NULL OR key = ANY(%(keys)s::text[])
    GROUP BY automation_id, key
"""

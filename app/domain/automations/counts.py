"""Counts of automations: runs by status, runs that passed each step, and starts that were refused.

A transaction appends what it changes; the scheduler adds that up. A read costs the same however many runs there are,
and is exact: it includes what has not been added up yet. Runs stay counted when their rows are deleted.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from marshmallow import fields

from app.database import rows
from app.lib.schemas import ResponseBody
from app.models.runs import STATUSES

RunCountsSchema = ResponseBody.from_dict({status: fields.Integer() for status in STATUSES}, name="RunCountsSchema")
IS_ANY_NEW = "EXISTS (SELECT FROM automation_deltas)"


def fold(limit: int = 10_000) -> int:
    """Adds up to `limit` changes to their counts; returns how many. Safe to run concurrently.

    Drops those of automations that have been deleted.
    """
    [(folded,)] = rows(_FOLD, (limit,))
    return int(folded)


def of(automation_ids: Collection[str], keys: Sequence[str] | None = None) -> dict[str, dict[str, int]]:
    """Every count of these automations, or those with these keys, from one snapshot; without what is not there."""
    found: dict[str, dict[str, int]] = {automation_id: {} for automation_id in automation_ids}
    for automation_id, key, amount in rows(_READ, {"ids": list(automation_ids), "keys": keys and list(keys)}):
        found[automation_id][key] = amount
    return found


def runs_by_status(automation_ids: Collection[str]) -> dict[str, dict[str, int]]:
    """For each of these automations, the number of runs in every status."""
    counted = of(automation_ids, STATUSES)
    return {id: {status: counts.get(status, 0) for status in STATUSES} for id, counts in counted.items()}


def steps_passed(automation_id: str, version: int) -> dict[str, int]:
    """How often runs of that version passed each step, by its identifier; without steps that none passed."""
    return _under(f"step:{version}:", automation_id)


def refused(automation_id: str) -> dict[str, int]:
    """How many starts were refused, by reason: `reentry` or `depth`; without reasons that there were none for."""
    return _under("refused:", automation_id)


def _under(prefix: str, automation_id: str) -> dict[str, int]:
    counted = of([automation_id])[automation_id]
    return {key.removeprefix(prefix): amount for key, amount in counted.items() if key.startswith(prefix)}


# In the order of their keys, so that two schedulers that change the same counts do not deadlock.
_FOLD = """
    WITH taken AS (
        DELETE FROM automation_deltas
        WHERE id IN (SELECT id FROM automation_deltas ORDER BY id LIMIT %s FOR UPDATE SKIP LOCKED)
        RETURNING automation_id, key, amount
    ), added AS (
        INSERT INTO automation_counts (automation_id, key, amount)
        SELECT automation_id, key, sum(amount) FROM taken
        WHERE EXISTS (SELECT FROM automations WHERE automations.id = taken.automation_id)
        GROUP BY automation_id, key ORDER BY automation_id, key
        ON CONFLICT (automation_id, key) DO UPDATE SET amount = automation_counts.amount + excluded.amount
    )
    SELECT count(*) FROM taken
"""

_READ = """
    SELECT automation_id, key, sum(amount)::bigint FROM (
        SELECT automation_id, key, amount FROM automation_counts WHERE automation_id = ANY(%(ids)s)
        UNION ALL
        SELECT automation_id, key, amount FROM automation_deltas WHERE automation_id = ANY(%(ids)s)) AS counted
    WHERE %(keys)s::text[] IS NULL OR key = ANY(%(keys)s::text[])
    GROUP BY automation_id, key
"""

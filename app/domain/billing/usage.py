"""Usage: what each workspace did, by meter and day, counted exactly once.

Verbs and workers record nothing for billing. The scheduler counts the rows that were created since its last pass, slice
by slice. A slice, and the time up to which it counted, are stored in one transaction. Younger rows are counted on
request.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from datetime import UTC, datetime, timedelta

from app.database import count, now, rows, transaction
from app.domain.billing.meters import METERS, Meter
from app.domain.billing.months import Month

# How old rows must be to be counted: a row becomes visible only at its commit, some time after its id was made.
SETTLED_AFTER = timedelta(minutes=5)
SLICE = timedelta(hours=1)
# How long a pass counts a meter; the next pass continues.
SLICE_SECONDS = 0.25


def count_up(at: datetime | None = None) -> int:
    """Counts settled rows that were not counted; returns how many amounts changed.

    Safe to run concurrently. The first run starts billing, with the current month.
    """
    at = at or now()
    _begin(at)
    return sum(_count_up(name, meter, at - SETTLED_AFTER) for name, meter in METERS.items())


def of(workspace_id: str, month: Month) -> dict[str, int]:
    """Returns the workspace's usage in the month up to now, by meter. Exact, from one snapshot."""
    with transaction():
        # Without a snapshot, rows counted between two queries would be missed or counted twice.
        rows("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        counted, until = totals([workspace_id], month)[workspace_id], _progress()
        for name, meter in METERS.items():
            since = max(until.get(name, month.starts_at), month.starts_at)
            if since < month.ends_at:
                counted[name] += meter.count_more(workspace_id, month, since, month.ends_at)
    return counted


def totals(workspace_ids: Collection[str], month: Month) -> dict[str, dict[str, int]]:
    """Returns each workspace's counted usage in the month, by meter."""
    found = {id: dict.fromkeys(METERS, 0) for id in workspace_ids}
    for workspace_id, meter, amount in rows(
        """
        SELECT workspace_id, meter, sum(amount)::bigint FROM usage_days
        WHERE workspace_id = ANY(%s) AND day >= %s AND day < %s GROUP BY workspace_id, meter
        """,
        (list(workspace_ids), month.first, month.next.first),
    ):
        found[workspace_id][meter] = amount
    return found


def is_counted(month: Month) -> bool:
    """Returns whether all usage of the month has been counted."""
    until = _progress()
    return all(name in until and until[name] >= month.ends_at for name in METERS)


def _begin(at: datetime) -> None:
    # A new installation has no usage before it was set up.
    count(
        """
        INSERT INTO billing_periods (month) SELECT %s WHERE NOT EXISTS (SELECT FROM billing_periods)
        ON CONFLICT DO NOTHING
        """,
        (Month.of(at).first,),
    )
    count(
        """
        INSERT INTO usage_progress (meter, counted_until)
        SELECT unnest(%s::text[]), greatest((SELECT min(month) FROM billing_periods WHERE closed_at IS NULL),
            (SELECT coalesce(min(created_at), %s) - interval '1 day' FROM workspaces))
        ON CONFLICT DO NOTHING
        """,
        (list(METERS), at),
    )


def _progress() -> dict[str, datetime]:
    return dict(rows("SELECT meter, counted_until FROM usage_progress"))


def _count_up(name: str, meter: Meter, settled: datetime) -> int:
    slice_ends, changed = time.monotonic() + SLICE_SECONDS, 0
    while (found := _count_slice(name, meter, settled)) is not None:
        changed += found
        if time.monotonic() > slice_ends:
            break
    return changed


def _count_slice(name: str, meter: Meter, settled: datetime) -> int | None:
    """Counts up to the end of the hour; None if nothing is left or another scheduler counts."""
    with transaction():
        behind = rows(
            "SELECT counted_until FROM usage_progress WHERE meter = %s AND counted_until < %s FOR UPDATE SKIP LOCKED",
            (name, settled),
        )
        if not behind:
            return None
        since = behind[0][0].astimezone(UTC)
        until = min(since.replace(minute=0, second=0, microsecond=0) + SLICE, settled)
        changed = meter.add_to_day(name, since.date(), since, until)
        count("UPDATE usage_progress SET counted_until = %s WHERE meter = %s", (until, name))
    return changed

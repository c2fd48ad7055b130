"""Figures: attempts and failures by minute and hour, and writes by minute.

Recording an outcome writes no figures: the scheduler counts outcomes later, in slices. One transaction stores the
figures of a slice and the time up to which outcomes are counted, so that each outcome counts once. A minute's writes
are counted when it is over, and again after SETTLED_AFTER; the second count replaces the first.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from app import sql
from app.database import count, rows, transaction
from app.lib import ids

KEPT = timedelta(days=30)
# Upper bounds of the buckets of durations, in milliseconds; the last bucket has none.
BOUNDS_MS = (10, 25, 50, 100, 250, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000)
TABLES = ("delivery_minutes", "delivery_hours", "failure_minutes", "failure_hours", "job_minutes", "queue_minutes")

MINUTE = timedelta(minutes=1)
# How far back the first pass of a new installation looks. It has nothing older, so looking further only costs time.
LOOKS_BACK = timedelta(hours=6)
# A slice with few rows is followed by a longer one, so that a pass catches up.
SHORTEST_SLICE, LONGEST_SLICE = timedelta(seconds=1), timedelta(minutes=10)
MANY_IN_A_SLICE = 50_000
# A pass stops counting after this time; the next one continues.
SLICE_SECONDS = 0.25
# A transaction appears among the running ones a moment after its start time.
LAG_SECONDS = 1.0
# The writes accepted in a minute are counted when the minute is over, and again after this time.
SETTLED_AFTER = timedelta(minutes=5)

_OUTCOMES, _WRITES = "outcomes", "writes"


def count_outcomes() -> int:
    """Counts attempts, failed jobs and failed runs that were not counted yet; returns how many.

    Bounded in time. Safe to run concurrently: one of the callers counts. Misses no late commits, because it never
    counts beyond the start of a transaction that is still running.
    """
    _begin(_OUTCOMES)
    ends, length, counted = time.monotonic() + SLICE_SECONDS, MINUTE, 0
    # Determined once, before any rows are read: all rows before this time are committed. The next pass counts the rest.
    until = settled()
    while (found := _count_slice(length, until)) is not None:
        counted += found
        length = max(length / 2, SHORTEST_SLICE) if found > MANY_IN_A_SLICE else min(length * 2, LONGEST_SLICE)
        if time.monotonic() > ends:
            break
    return counted


def settled() -> datetime:
    """Returns a time before which everything is committed: figures count up to it."""
    [(found,)] = rows(_SETTLED, (LAG_SECONDS,))
    return found  # type: ignore[no-any-return]


def count_writes() -> int:
    """Counts the writes accepted in minutes that are over; returns how many figures it wrote.

    Bounded in time; safe to repeat and to run concurrently: a minute is counted as a whole.
    """
    _begin(_WRITES)
    ends, written = time.monotonic() + SLICE_SECONDS, 0
    for minute in _uncounted_minutes():
        written += _count_writes_of(minute) + _count_writes_of(minute - SETTLED_AFTER)
        count(
            "UPDATE figure_progress SET counted_until = greatest(counted_until, %s) WHERE name = %s",
            (minute + MINUTE, _WRITES),
        )
        if time.monotonic() > ends:
            break
    return written


def _begin(name: str) -> None:
    begun = "INSERT INTO figure_progress VALUES (%s, date_trunc('minute', now() - %s)) ON CONFLICT DO NOTHING"
    count(begun, (name, LOOKS_BACK))


def _count_slice(length: timedelta, settled: datetime) -> int | None:
    """Counts a slice; returns how many rows, None if no slice is left or another scheduler counts."""
    with transaction():
        progress = "SELECT counted_until FROM figure_progress WHERE name = %s FOR UPDATE SKIP LOCKED"
        behind = rows(progress, (_OUTCOMES,))
        if not behind:
            return None
        since = behind[0][0]
        if settled <= since:
            return None
        until = min(since + length, settled)
        # The planner expects few rows, which it would sort to group them; with many, sorting costs more than all the
        # rest.
        rows("SET LOCAL enable_sort = off")
        slice = {"since": since, "until": until, "bounds": sql.array(BOUNDS_MS)}
        [(found,)] = rows(sql.prepared("count_outcomes"), slice)
        count("UPDATE figure_progress SET counted_until = %s WHERE name = %s", (until, _OUTCOMES))
    return int(found)


def _uncounted_minutes() -> Iterator[datetime]:
    [(until, at)] = rows("SELECT counted_until, now() FROM figure_progress WHERE name = %s", (_WRITES,))
    minute = until.astimezone(UTC).replace(second=0, microsecond=0)
    # A write becomes visible when its transaction commits, a moment after its identifier was created.
    while minute + MINUTE + timedelta(seconds=LAG_SECONDS) <= at:
        yield minute
        minute += MINUTE


def _count_writes_of(minute: datetime) -> int:
    return count(_WRITES_OF, (minute, ids.bound("job", minute), ids.bound("job", minute + MINUTE)))


# The time up to which everything is committed. Bellhop's transactions write soon after they begin and end within
# minutes, by the limits of every session (`app/database`). Longer transactions, such as a backup, are ignored.
_SETTLED = """
    SELECT least(now(), min(xact_start)) - %s * interval '1 second' FROM pg_stat_activity
    WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
        AND xact_start > now() - CASE WHEN backend_xid IS NULL THEN interval '30 seconds' ELSE interval '5 minutes' END
"""

_WRITES_OF = """
    INSERT INTO job_minutes (workspace_id, starts_at, accepted, succeeded, failed)
    SELECT coalesce(workspace_id, ''), %s, count(*), count(*) FILTER (WHERE status = 'succeeded'),
        count(*) FILTER (WHERE status = 'failed')
    FROM jobs WHERE id >= %s AND id < %s
    GROUP BY GROUPING SETS ((workspace_id), ()) HAVING count(*) > 0
    ORDER BY 1
    ON CONFLICT (workspace_id, starts_at) DO UPDATE SET
        accepted = excluded.accepted, succeeded = excluded.succeeded, failed = excluded.failed
"""

"""Start scans: plan starts for existing bookings or contacts when a timed trigger is published.

They also remove the waiting starts of a trigger that has ended. Each part is a transaction of bounded size. Bookings
and contacts that change during a scan are planned by their events too; planning twice changes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from datetime import datetime
from functools import partial
from typing import NamedTuple

import structlog

from app import sql
from app.database import count, delete_some, rows, transaction
from app.domain.triggers import batches, dates, timed_triggers, waiting_starts
from app.domain.triggers.timed_triggers import Trigger
from app.domain.work.units import Unit

log = structlog.get_logger(__name__)

# The most rows that one transaction plans starts for, or removes.
PART = 500
# Seconds after which `go_on` stops, although more is left to do.
SLICE_SECONDS = 0.1
# The most timed triggers, schedules included, of a workspace's published automations. Each booking may have a waiting
# start for each.
MOST_TIMED = 50

IS_ANY_UNDER_WAY = "EXISTS (SELECT FROM timed_triggers WHERE scanned_to IS NOT NULL)"


class _Scan(NamedTuple):
    """A trigger whose scan is in progress: the columns of its row."""

    automation_id: str
    key: str
    workspace_id: str
    since: datetime
    scanned_to: str
    is_ended: bool


def count_others(workspace_id: str, automation_id: str) -> int:
    """Counts the timed triggers, except schedules, of the workspace's other published automations."""
    others = "SELECT count(*) FROM timed_triggers WHERE workspace_id = %s AND automation_id <> %s AND NOT is_ended"
    return int(rows(others, (workspace_id, automation_id))[0][0])


def watch(workspace_id: str, automation_id: str, triggers: Collection[Trigger]) -> None:
    """Replaces the automation's timed triggers. An unchanged trigger keeps its waiting starts."""
    keys = {timed_triggers.key_of(trigger) for trigger in triggers}
    values = {"workspace_id": workspace_id, "automation_id": automation_id, "keys": sql.array(keys)}
    count(_END, values)
    if keys:
        count(_BEGIN, values)


def begin_again(workspace_id: str) -> None:
    """Restarts the scans for dates, because the workspace's time zone has changed."""
    count(_AGAIN, (workspace_id,))


def go_on() -> int:
    """Scans some parts, one of each workspace in turn; returns how many rows these parts covered."""
    count(_HOLD_BACK)
    ends, done = time.monotonic() + SLICE_SECONDS, 0
    while scans := rows(_UNDER_WAY):
        before = done
        for scan in scans:
            done += _do_part(*scan)
            if time.monotonic() > ends:
                return done
        if done == before:
            break
    return done


def _do_part(automation_id: str, key: str) -> int:
    with transaction():
        found = rows(_LOCK, (automation_id, key))
        if not found:
            return 0
        scan = _Scan(*found[0])
        return _remove_part(scan) if scan.is_ended else _plan_part(scan)


def _remove_part(scan: _Scan) -> int:
    """Removes waiting starts of a trigger that has ended, and the trigger once none are left."""
    of_trigger = (scan.automation_id, scan.key)
    removed = delete_some("waiting_starts", "automation_id = %s AND key = %s", "automation_id, key", of_trigger, PART)
    count(_FORGET, {"automation_id": scan.automation_id, "key": scan.key})
    return removed


def _plan_part(scan: _Scan) -> int:
    found = _next(scan)
    planned = [(about_id, place) for about_id, place, has_time in found if has_time]
    keys = (scan.workspace_id, scan.automation_id, scan.key)
    needs = [need for about_id, _ in planned for need in waiting_starts.needs_of(*keys, about_id)]
    results = batches.run([partial(_plan, scan, about_id) for about_id, _ in planned], needs)
    for (about_id, _), result in zip(planned, results, strict=False):
        if isinstance(result, Exception):
            log.error("start_scans.failed", automation=scan.automation_id, about=about_id, exc_info=result)
    reached: str | None = scan.scanned_to
    if len(results) == len(planned):
        reached = found[-1][1] if len(found) == PART else None
    elif results:
        reached = planned[len(results) - 1][1]
    count(_REACH, (reached, scan.automation_id, scan.key))
    return len(found) if len(results) == len(planned) else len(results)


def _next(scan: _Scan) -> list[tuple[str, str, bool]]:
    """Returns the next rows to plan: bookings still to come at the publication, or contacts.

    Each as (id, place of the scan after it, whether it has the trigger's date). Bookings always have one.
    """
    trigger = timed_triggers.trigger_of(scan.key)
    place = {"workspace_id": scan.workspace_id, "limit": PART}
    if timed_triggers.listens_to(trigger) == timed_triggers.DATE:
        return list(rows(_NEXT_CONTACTS, {**place, "id": scan.scanned_to, "field": dates.field_of(trigger)}))
    at, _, booking_id = scan.scanned_to.partition(" ")
    found = rows(_NEXT_BOOKINGS, {**place, "at": at or scan.since.isoformat(), "id": booking_id})
    return [(id, f"{starts_at.isoformat()} {id}", True) for id, starts_at in found]


def _plan(scan: _Scan, about_id: str, unit: Unit) -> None:
    about = waiting_starts.find_about(unit, waiting_starts.about_key(scan.workspace_id, scan.key, about_id))
    if about is not None:
        waiting_starts.plan(unit, scan.automation_id, scan.key, about, published_at=scan.since)


_END = """
    UPDATE timed_triggers SET is_ended = true, scanned_to = '', begins_at = NULL
    WHERE automation_id = %(automation_id)s AND NOT is_ended AND key <> ALL(%(keys)s::text[])
"""
_BEGIN = """
    INSERT INTO timed_triggers (workspace_id, automation_id, key)
    SELECT %(workspace_id)s, %(automation_id)s, unnest(%(keys)s::text[])
    ON CONFLICT (automation_id, key) DO UPDATE SET is_ended = false, since = now(), scanned_to = '', begins_at = NULL
    WHERE timed_triggers.is_ended
"""
_AGAIN = """
    UPDATE timed_triggers SET scanned_to = '', begins_at = NULL
    WHERE workspace_id = %s AND NOT is_ended AND key::jsonb ? 'date'
"""
# A transaction that began before the publication was committed may still make bookings without knowing the trigger, so
# the scan waits for it. If `begins_at` is ahead of all transactions, it comes from another cluster, whose dump was
# restored here.
_HOLD_BACK = """
    UPDATE timed_triggers SET begins_at = pg_snapshot_xmax(pg_current_snapshot())
    WHERE scanned_to IS NOT NULL AND (begins_at IS NULL OR begins_at > pg_snapshot_xmax(pg_current_snapshot()))
"""
# One scan for each of up to ten workspaces at random, so that no workspace waits for all scans of another.
_UNDER_WAY = """
    SELECT automation_id, key FROM (
        SELECT DISTINCT ON (workspace_id) automation_id, key FROM timed_triggers
        WHERE scanned_to IS NOT NULL AND begins_at <= pg_snapshot_xmin(pg_current_snapshot())
        ORDER BY workspace_id, random()
    ) AS scan ORDER BY random() LIMIT 10
"""
_LOCK = """
    SELECT automation_id, key, workspace_id, since, scanned_to, is_ended FROM timed_triggers
    WHERE automation_id = %s AND key = %s AND scanned_to IS NOT NULL FOR NO KEY UPDATE SKIP LOCKED
"""
_REACH = "UPDATE timed_triggers SET scanned_to = %s WHERE automation_id = %s AND key = %s"
_FORGET = """
    DELETE FROM timed_triggers WHERE automation_id = %(automation_id)s AND key = %(key)s
        AND NOT EXISTS (SELECT FROM waiting_starts WHERE automation_id = %(automation_id)s AND key = %(key)s)
"""
_NEXT_BOOKINGS = """
    SELECT id, starts_at FROM bookings
    WHERE workspace_id = %(workspace_id)s AND status = 'booked'
        AND (starts_at, id) > (%(at)s::timestamptz, %(id)s)
    ORDER BY starts_at, id LIMIT %(limit)s
"""
_NEXT_CONTACTS = """
    SELECT id, id, custom_fields ? %(field)s FROM contacts
    WHERE workspace_id = %(workspace_id)s AND id > %(id)s ORDER BY id LIMIT %(limit)s
"""

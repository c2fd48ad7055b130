"""Schedules: start runs for a segment's contacts each day, week or month, or when they enter it.

An occurrence goes through the contacts in parts. Each part's runs and its progress are one transaction, under the lock
of the schedule's row. A schedule for entries looks at the segment again after each pause, and begins runs for the
contacts that were not in it at the previous look. The first look begins none.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Collection, Sequence
from datetime import date, datetime, time, timedelta
from functools import partial
from time import monotonic
from typing import NamedTuple
from zoneinfo import ZoneInfo

import structlog

from app.database import count, delete_some, now, rows, transaction
from app.domain.segments import scans, segments
from app.domain.segments.scans import Part, Scan
from app.domain.triggers import automation_listeners, batches, conditions, due_starts, run_states, timed_triggers
from app.domain.triggers.automation_listeners import Listener
from app.domain.triggers.timed_triggers import WEEKDAYS, Trigger
from app.domain.work.units import Unit
from app.lib import time_zones
from app.models.contacts import Contact
from app.models.segments import Segment

log = structlog.get_logger(__name__)

# The `kind` of the event that runs get, for a schedule and for an entry.
KIND, ENTERED = "contact.scheduled", "segment.entered"
# The most runs that one transaction begins.
PART = 200
# Seconds after which `start_some` stops although more is due, and a part stops looking for contacts.
SLICE_SECONDS = 0.25
# The pause between two looks for entries: REST_TIMES the duration of the first look, within the limits.
REST_TIMES, LEAST_REST, MOST_REST = 20, timedelta(seconds=30), timedelta(minutes=5)
IS_ANY_DUE = "EXISTS (SELECT FROM schedules WHERE next_at <= now())"
# One more than the most days between two occurrences (31).
_MOST_DAYS = 32
# The most contacts that one transaction removes from a roll.
ROLL_PART = 5_000


class _Schedule(NamedTuple):
    """A due schedule. `began_at`: of the occurrence, or now. `timezone`: of the workspace."""

    automation_id: str
    key: str
    workspace_id: str
    segment_id: str
    began_at: datetime
    reached: str
    is_filled: bool
    timezone: str | None

    @property
    def trigger(self) -> Trigger:
        return timed_triggers.trigger_of(self.key)

    @property
    def is_of_entries(self) -> bool:
        return timed_triggers.is_of_entries(self.trigger)


def watch(workspace_id: str, automation_id: str, triggers: Collection[Trigger]) -> None:
    """Replaces the automation's schedules. An unchanged schedule keeps its progress."""
    by_key = {timed_triggers.key_of(trigger): trigger for trigger in triggers}
    count("DELETE FROM schedules WHERE automation_id = %s AND key <> ALL(%s)", (automation_id, list(by_key)))
    if not by_key:
        return
    timezone, at = _timezone(workspace_id), now()
    for key, trigger in by_key.items():
        next_at = at if timed_triggers.is_of_entries(trigger) else _next_after(trigger, timezone, at)
        count(_ADD, (automation_id, key, workspace_id, trigger["segment_id"], next_at))


def count_others(workspace_id: str, automation_id: str) -> int:
    """Returns how many schedules the other published automations of the workspace have."""
    others = "SELECT count(*) FROM schedules WHERE workspace_id = %s AND automation_id <> %s"
    return int(rows(others, (workspace_id, automation_id))[0][0])


def move(workspace_id: str) -> None:
    """Computes future occurrences again, because the workspace's time zone has changed.

    Leaves out due schedules, and schedules of entries.
    """
    timezone, at = _timezone(workspace_id), now()
    for automation_id, key in rows(_COMING, (workspace_id, at)):
        trigger = timed_triggers.trigger_of(key)
        if not timed_triggers.is_of_entries(trigger):
            moved = "UPDATE schedules SET next_at = %s WHERE automation_id = %s AND key = %s"
            count(moved, (_next_after(trigger, timezone, at), automation_id, key))


def start_some() -> int:
    """Begins due runs until none is left or the slice is over; returns 0 if nothing was done.

    Each round does one part for each workspace, so that no workspace delays another. Safe to run concurrently: each run
    begins once.
    """
    ends, done = monotonic() + SLICE_SECONDS, 0
    while due := rows(_DUE):
        has_moved = False
        for automation_id, key in due:
            has_moved = _do_part(automation_id, key) or has_moved
            done += has_moved
            if monotonic() > ends:
                return done
        if not has_moved:
            break
    return done


def next_after(trigger: Trigger, zone: ZoneInfo, after: datetime) -> datetime:
    """Returns the first occurrence later than `after`.

    A local time that the clock skips is moved later by the length of the gap. If a local time comes twice in a day, the
    first is used. In a month without the trigger's day, the last day is used.
    """
    clock, first = time.fromisoformat(trigger["at"]), after.astimezone(zone).date()
    days = (first + timedelta(days=number) for number in range(_MOST_DAYS + 1))
    moments = (time_zones.instant_of(day, clock, zone) for day in days if _is_on(trigger, day))
    return next(moment for moment in moments if moment > after)


class Entries(NamedTuple):
    """Contacts that entered a segment since the last look, ordered by id, and contacts that left it."""

    entered: Sequence[str]
    left: Collection[str]

    def up_to(self, last_id: str | None) -> Entries:
        """Returns the entries up to the contact `last_id`; all if it is None."""
        if last_id is None:
            return self
        entered, left = ([each for each in some if each <= last_id] for some in self)
        return Entries(entered, left)


def find_entries(automation_id: str, segment_id: str, after: str, part: Part) -> Entries:
    """Compares a part of an oldest-first scan, which begins after the contact `after`, with the roll."""
    known = {id for (id,) in rows(_ROLL, (automation_id, segment_id, after, part.last_id, part.last_id))}
    return Entries([each for each in part.ids if each not in known], known.difference(part.ids))


def keep_entries(workspace_id: str, automation_id: str, segment_id: str, entries: Entries) -> None:
    """Adds the contacts that entered to the roll, and removes the contacts that left."""
    about = {"workspace_id": workspace_id, "automation_id": automation_id, "segment_id": segment_id}
    if entries.entered:
        count(_ADD_TO_ROLL, {**about, "ids": list(entries.entered)})
    if entries.left:
        count(_REMOVE_FROM_ROLL, {**about, "ids": list(entries.left)})


def drop_left() -> int:
    """Removes up to ROLL_PART contacts from up to ten rolls without schedules; returns how many."""
    return sum(_drop_some(automation_id, segment_id) for automation_id, segment_id in rows(_LEFT))


def _do_part(automation_id: str, key: str) -> bool:
    """Begins the runs of the schedule's next part.

    Returns False, with nothing done, if the schedule is locked or no longer due, or the first contact is locked.
    """
    with transaction():
        found = rows(_LOCK, (automation_id, key))
        if not found:
            return False
        schedule = _Schedule(*found[0])
        listener = automation_listeners.starting([automation_id]).get(automation_id)
        segment = segments.find(schedule.workspace_id, schedule.segment_id)
        if listener is None or segment is None:
            _end(schedule)
            return True
        scan = Scan(schedule.workspace_id, segment.filter, is_newest_first=False, at=schedule.began_at)
        part = next(scan.parts(SLICE_SECONDS, schedule.reached))
        new = find_entries(automation_id, segment.id, schedule.reached, part) if schedule.is_of_entries else None
        due = part.ids if new is None else new.entered if schedule.is_filled else []
        begun = _begin(schedule, listener, segment, due[:PART])
        reached = part.last_id if len(begun) == len(due) else begun[-1] if begun else schedule.reached
        if new is not None:
            keep_entries(schedule.workspace_id, automation_id, segment.id, new.up_to(reached))
        _reach(schedule, reached)
        return bool(begun) or not due


def _begin(schedule: _Schedule, listener: Listener, segment: Segment, contact_ids: Sequence[str]) -> Sequence[str]:
    """Begins runs, up to the first contact that is locked; returns the contacts that it handled."""
    further = scans.further_fields(contact_ids)
    triggers = timed_triggers.with_key(listener.triggers, schedule.key)
    kind = ENTERED if schedule.is_of_entries else KIND
    condition = conditions.at_time(segment.filter, schedule.began_at)

    def start(contact_id: str, unit: Unit) -> None:
        contact = unit.get(Contact, schedule.workspace_id, "id", contact_id)
        # The contact may have changed since the scan, or been deleted.
        if contact and conditions.holds(condition, scans.variables(contact, further.get(contact_id, {}))):
            due_starts.enter(unit, listener, contact, triggers, kind)

    needs = run_states.needs(schedule.workspace_id, listener.id, contact_ids)
    results = batches.run([partial(start, each) for each in contact_ids], needs) if contact_ids else []
    for contact_id, result in zip(contact_ids, results, strict=False):
        if isinstance(result, Exception):
            log.error("schedule.failed", automation=listener.id, contact=contact_id, exc_info=result)
    return contact_ids[: len(results)]


def _reach(schedule: _Schedule, reached: str | None) -> None:
    """Stores how far the occurrence has got. At its end, sets the next one."""
    if reached is None:
        _end(schedule)
    else:
        count(_REACH, (schedule.began_at, reached, schedule.automation_id, schedule.key))


def _end(schedule: _Schedule) -> None:
    """Sets the next occurrence. Occurrences missed meanwhile run at once, as a single one."""
    if schedule.is_of_entries:
        at = now()
        next_at = at + min(max((at - schedule.began_at) * REST_TIMES, LEAST_REST), MOST_REST)
    else:
        next_at = _next_after(schedule.trigger, schedule.timezone, schedule.began_at)
    count(_NEXT, (next_at, schedule.automation_id, schedule.key))


def _timezone(workspace_id: str) -> str | None:
    [(timezone,)] = rows("SELECT timezone FROM workspaces WHERE id = %s", (workspace_id,))
    return str(timezone) if timezone else None


def _next_after(trigger: Trigger, timezone: str | None, after: datetime) -> datetime:
    return next_after(trigger, time_zones.first_known(trigger.get("timezone"), timezone), after)


def _is_on(trigger: Trigger, day: date) -> bool:
    match trigger["every"]:
        case "week":
            return day.weekday() == WEEKDAYS.index(trigger["on"])
        case "month":
            return bool(day.day == min(trigger["on"], monthrange(day.year, day.month)[1]))
    return True


def _drop_some(automation_id: str, segment_id: str) -> int:
    """Removes a part of the roll, unless the automation has been published with the schedule again."""
    with transaction():
        # A publication holds this lock. The next statement sees the changes of a finished publication.
        if not rows("SELECT 1 FROM automations WHERE id = %s FOR UPDATE SKIP LOCKED", (automation_id,)):
            return 0
        is_left = "automation_id = %s AND segment_id = %s AND NOT " + _HAS_SCHEDULE.format("segment_contacts")
        return delete_some("segment_contacts", is_left, "contact_id", (automation_id, segment_id), ROLL_PART)


_ADD = """
    INSERT INTO schedules (automation_id, key, workspace_id, segment_id, next_at) VALUES (%s, %s, %s, %s, %s)
    ON CONFLICT (automation_id, key) DO NOTHING
"""
_COMING = "SELECT automation_id, key FROM schedules WHERE workspace_id = %s AND began_at IS NULL AND next_at > %s"
# One schedule for each of up to ten workspaces at random, so that no workspace waits for all schedules of another. The
# schedules of paused automations stay due.
_DUE = """
    SELECT automation_id, key FROM (
        SELECT DISTINCT ON (schedule.workspace_id) automation_id, key
        FROM schedules schedule JOIN automations ON automations.id = automation_id
        WHERE next_at <= now() AND automations.status <> 'paused'
        ORDER BY schedule.workspace_id, random()
    ) AS schedule ORDER BY random() LIMIT 10
"""
_LOCK = """
    SELECT automation_id, key, workspace_id, segment_id, coalesce(began_at, now()), reached, is_filled,
        (SELECT timezone FROM workspaces WHERE id = schedules.workspace_id)
    FROM schedules WHERE automation_id = %s AND key = %s AND next_at <= now() FOR NO KEY UPDATE SKIP LOCKED
"""
_REACH = "UPDATE schedules SET began_at = %s, reached = %s WHERE automation_id = %s AND key = %s"
_NEXT = """
    UPDATE schedules SET next_at = %s, began_at = NULL, reached = '', is_filled = true
    WHERE automation_id = %s AND key = %s
"""


_ROLL = """
    SELECT contact_id FROM segment_contacts WHERE automation_id = %s AND segment_id = %s
        AND contact_id > %s AND (%s::text IS NULL OR contact_id <= %s)
"""
_ADD_TO_ROLL = """
    INSERT INTO segment_contacts (workspace_id, automation_id, segment_id, contact_id)
    SELECT %(workspace_id)s, %(automation_id)s, %(segment_id)s, unnest(%(ids)s::text[])
"""
_REMOVE_FROM_ROLL = """
    DELETE FROM segment_contacts WHERE automation_id = %(automation_id)s AND segment_id = %(segment_id)s
        AND contact_id = ANY(%(ids)s::text[])
"""
_HAS_SCHEDULE = """EXISTS (SELECT FROM schedules
    WHERE schedules.automation_id = {0}.automation_id AND schedules.segment_id = {0}.segment_id)"""
# A skip scan: goes from one roll to the next, not through all contacts.
_LEFT = f"""
    WITH RECURSIVE roll(automation_id, segment_id) AS (
        (SELECT automation_id, segment_id FROM segment_contacts ORDER BY automation_id, segment_id LIMIT 1)
        UNION ALL
        SELECT next.* FROM roll CROSS JOIN LATERAL (
            SELECT automation_id, segment_id FROM segment_contacts
            WHERE (automation_id, segment_id) > (roll.automation_id, roll.segment_id)
            ORDER BY automation_id, segment_id LIMIT 1) AS next
    )
    SELECT automation_id, segment_id FROM roll WHERE NOT {_HAS_SCHEDULE.format("roll")} LIMIT 10
"""

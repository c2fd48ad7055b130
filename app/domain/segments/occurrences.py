"""Occurrences: computes the next time of a schedule, in a time zone."""

from __future__ import annotations

from calendar import monthrange
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from app.domain.triggers.timed_triggers import WEEKDAYS, Trigger
from app.lib import time_zones

# One more than the most days between two occurrences, which are 31.
_MOST_DAYS = 32


def next_after(trigger: Trigger, zone: ZoneInfo, after: datetime) -> datetime:
    """Returns the first occurrence later than `after`.

    A local time that the clock skips is moved later by the length of the gap. If a local time comes twice in a day, the
    first is used. In a month without the trigger's day, the last day is used.
    """
    clock, first = time.fromisoformat(trigger["at"]), after.astimezone(zone).date()
    days = (first + timedelta(days=number) for number in range(_MOST_DAYS + 1))
    moments = (time_zones.moment(day, clock, zone) for day in days if _is_on(trigger, day))
    return next(moment for moment in moments if moment > after)


def _is_on(trigger: Trigger, day: date) -> bool:
    match trigger["every"]:
        case "week":
            return day.weekday() == WEEKDAYS.index(trigger["on"])
        case "month":
            return bool(day.day == min(trigger["on"], monthrange(day.year, day.month)[1]))
    return True

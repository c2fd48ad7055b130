"""Occurrences: the times of a schedule, in a time zone."""

from __future__ import annotations

from calendar import monthrange
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from app.domain.triggers.timed_triggers import WEEKDAYS, Trigger
from app.lib import time_zones

# The most days between two occurrences, and one more.
_MOST_DAYS = 32


def next_after(trigger: Trigger, zone: ZoneInfo, after: datetime) -> datetime:
    """Returns the first occurrence later than `after`.

    A time that the clock skips occurs later by the length of the gap. A time that it shows twice occurs once, the first
    time. In a month without the day, the last day is used.
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

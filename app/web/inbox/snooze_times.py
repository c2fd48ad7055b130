"""Times in words: for snoozing conversations and scheduling messages."""

from __future__ import annotations

import re
from datetime import datetime
from zoneinfo import ZoneInfo, available_timezones

import dateparser

from app.domain.conversations import snoozes
from app.errors import Fault, Invalid

# The choices in the form. Any other time is typed.
CHOICES = ("in 1 hour", "in 4 hours", "tomorrow 9:00", "monday 9:00", "in 1 week")
LONGEST = 60
_UNKNOWN = "This is no time that is understood. Write it as “tomorrow 9:00”, “in 2 hours” or “2026-12-24 10:00”."
# Matches an hour without minutes: "tomorrow 9", "monday at 17".
_HOUR = re.compile(r"^(?!in\b)(.*[a-z] )(?:at )?(\d{1,2})$", re.ASCII)


def read(text: str, zone: str, now: datetime) -> datetime:
    """Like `parse`, but also raises Invalid unless a conversation can be snoozed until then."""
    found = parse(text, zone, now)
    if not snoozes.is_possible(found, now):
        raise Invalid(Fault("/until", f"Give a time that is to come, within {snoozes.MOST_DAYS} days."))
    return found


def parse(text: str, zone: str, now: datetime) -> datetime:
    """Reads a time in words, in the time zone, relative to `now`. Raises Invalid."""
    if len(text) > LONGEST:
        raise Invalid(Fault("/until", _UNKNOWN))
    wanted = _HOUR.sub(r"\1\2:00", text.strip().lower())
    settings = {
        "PREFER_DATES_FROM": "future",
        "RELATIVE_BASE": now.astimezone(ZoneInfo(zone)).replace(tzinfo=None),
        "TIMEZONE": zone,
        "RETURN_AS_TIMEZONE_AWARE": True,
    }
    try:
        found = dateparser.parse(wanted, languages=["en"], settings=settings)
    except OverflowError:  # the first or last representable day, in another time zone
        found = None
    if found is None:
        raise Invalid(Fault("/until", _UNKNOWN))
    return found


def zone_of(name: str, default: str) -> str:
    """Returns the time zone of that name, or the default if it is unknown."""
    return name if name in available_timezones() else default

"""Time zones: converts people's days and clock times to times in UTC."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from zoneinfo import ZoneInfo

from app.lib import normalization


def first_known(*names: str | None) -> ZoneInfo:
    """Returns the first of the time zones that exists, or UTC."""
    return ZoneInfo(next((name for name in names if name and normalization.is_timezone(name)), "UTC"))


def instant_of(day: date, clock: time, zone: ZoneInfo) -> datetime:
    """Returns the time, in UTC, at which the zone's clock shows this day and time.

    The result is in UTC, because Python compares two times of one zone by what the clock shows, whatever their offsets.
    A time that the clock skips counts as in RFC 5545 (3.3.5). Of a time that it shows twice, the first counts, or the
    second if `fold` is 1.
    """
    return datetime.combine(day, clock, zone).astimezone(UTC)

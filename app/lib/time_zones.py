"""Time zones: days and clocks of people as moments in UTC."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from zoneinfo import ZoneInfo

from app.lib import normalization


def first_known(*names: str | None) -> ZoneInfo:
    """The first of the time zones that exists, or UTC."""
    return ZoneInfo(next((name for name in names if name and normalization.is_timezone(name)), "UTC"))


def moment(day: date, clock: time, zone: ZoneInfo) -> datetime:
    """When that is, in UTC, as Python compares times of one zone by the clock.

    A time that the clock skips counts as in RFC 5545 (3.3.5). Of one that it shows twice, it is the first, or the
    second if the clock's `fold` is 1.
    """
    return datetime.combine(day, clock, zone).astimezone(UTC)

"""Periods: days of a time zone, their steps, and the UTC hours, days and months of their figures.

A UTC hour belongs to the day in which it begins. So in a zone with half an hour in its offset, the figures of a day are
from half past midnight to half past midnight.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from app.errors import Fault, Invalid
from app.lib import clock
from app.lib.time_zones import instant_of

MOST_DAYS = 366
USUAL_DAYS = 30
_DAY = timedelta(days=1)
# The longest period, in days, that has steps of each kind.
_STEPS = ((2, "hour"), (31, "day"), (92, "week"), (MOST_DAYS, "month"))


class Piece(NamedTuple):
    """The figures of one grain from `since` on and before `until`."""

    grain: str
    since: datetime
    until: datetime


@dataclass(frozen=True, slots=True)
class Period:
    """The days from `first` to `last` in a time zone, MOST_DAYS at most."""

    first: date
    last: date
    zone: ZoneInfo

    @property
    def days(self) -> int:
        """The number of days."""
        return (self.last - self.first).days + 1

    @property
    def step(self) -> str:
        """The kind of its steps: `hour`, `day`, `week` (from Monday) or `month`."""
        return next(step for days, step in _STEPS if self.days <= days)

    @property
    def since(self) -> datetime:
        """The time at which the period begins."""
        return _midnight(self.first, self.zone)

    @property
    def until(self) -> datetime:
        """The time at which the period is over."""
        return _midnight(self.last + _DAY, self.zone)

    @property
    def before(self) -> Period:
        """The period of as many days just before this one."""
        return Period(self.first - self.days * _DAY, self.first - _DAY, self.zone)

    def steps(self) -> list[tuple[datetime, datetime]]:
        """Returns the beginning and end of each step. The period may cut off the first and the last one."""
        if self.step == "hour":
            hours = (self.until - self.since) // timedelta(hours=1)
            starts = [self.since + timedelta(hours=number) for number in range(hours)]
        else:
            starts = [_midnight(day, self.zone) for day in self._first_days()]
        return list(zip(starts, (*starts[1:], self.until), strict=True))

    def _first_days(self) -> Iterator[date]:
        for number in range(self.days):
            day = self.first + number * _DAY
            begins = {"day": True, "week": day.weekday() == 0, "month": day.day == 1}[self.step]
            if begins or not number:
                yield day


def chosen(first: date | None, last: date | None, zone: ZoneInfo) -> Period:
    """Returns the period from `first` to `last`. By default, USUAL_DAYS up to today. Raises Invalid."""
    if last is None:
        last = clock.now().astimezone(zone).date()
    period = Period(first or last - (USUAL_DAYS - 1) * _DAY, last, zone)
    if period.days < 1:
        raise Invalid(Fault("/last_day", "This must not be before first_day."))
    if period.days > MOST_DAYS:
        raise Invalid(Fault("/first_day", f"A report is about {MOST_DAYS} days at most."))
    return period


def day(text: str) -> date:
    """Reads a day such as 2026-11-21. Raises ValueError."""
    if not re.fullmatch("2[0-9]{3}-[0-9]{2}-[0-9]{2}", text, re.ASCII):
        raise ValueError("Give a day such as 2026-11-21.")
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ValueError("There is no such day.") from None


def pieces(since: datetime, until: datetime, grains: Sequence[str] = ("month", "day", "hour")) -> list[Piece]:
    """Returns the fewest pieces that make up the time from `since` to `until`."""
    grain, *finer = grains
    if not finer:
        return [Piece(grain, since, until)] if since < until else []
    first, last = _at_or_after(since, grain), _at_or_before(until, grain)
    if first >= last:
        return pieces(since, until, finer)
    return [*pieces(since, first, finer), Piece(grain, first, last), *pieces(last, until, finer)]


def _midnight(day: date, zone: ZoneInfo) -> datetime:
    return instant_of(day, time(), zone)


def _at_or_before(at: datetime, grain: str) -> datetime:
    midnight = at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return midnight.replace(day=1) if grain == "month" else midnight


def _at_or_after(at: datetime, grain: str) -> datetime:
    start = _at_or_before(at, grain)
    return start if start == at else _at_or_before(start + (32 if grain == "month" else 1) * _DAY, grain)

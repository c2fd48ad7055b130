"""Months of the calendar, in UTC: the periods of billing."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta


@dataclass(frozen=True, slots=True)
class Month:
    """A month, named by its first day. It ends where the next one begins."""

    first: date

    @classmethod
    def of(cls, at: datetime) -> Month:
        """The month that the moment is in."""
        return cls(at.astimezone(UTC).date().replace(day=1))

    @property
    def next(self) -> Month:
        return Month((self.first + timedelta(days=31)).replace(day=1))

    @property
    def starts_at(self) -> datetime:
        return datetime.combine(self.first, time(), UTC)

    @property
    def ends_at(self) -> datetime:
        return self.next.starts_at

    @property
    def days(self) -> int:
        return (self.next.first - self.first).days

    def days_since(self, at: datetime) -> int:
        """How many of its days are that of `at`, a moment before its end, or later; all where `at` is before it."""
        return min(self.days, (self.next.first - at.astimezone(UTC).date()).days)

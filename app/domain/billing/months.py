"""Calendar months in UTC: the periods of billing."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta


@dataclass(frozen=True, slots=True)
class Month:
    """A month, identified by its first day. Its end is the start of the next."""

    first: date

    @classmethod
    def of(cls, at: datetime) -> Month:
        """The month that contains the moment."""
        return cls(at.astimezone(UTC).date().replace(day=1))

    @property
    def next(self) -> Month:
        """The following month."""
        return Month((self.first + timedelta(days=31)).replace(day=1))

    @property
    def starts_at(self) -> datetime:
        """Its first moment."""
        return datetime.combine(self.first, time(), UTC)

    @property
    def ends_at(self) -> datetime:
        """The first moment after it."""
        return self.next.starts_at

    @property
    def days(self) -> int:
        """The number of its days."""
        return (self.next.first - self.first).days

    def days_since(self, at: datetime) -> int:
        """The number of its days from that of `at` to its end; all if `at` is earlier. `at` must be before its end."""
        return min(self.days, (self.next.first - at.astimezone(UTC).date()).days)

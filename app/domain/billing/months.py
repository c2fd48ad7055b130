"""Calendar months in UTC: the periods of billing."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta


@dataclass(frozen=True, slots=True)
class Month:
    """A month, identified by its first day. It ends where the next one starts."""

    first: date

    @classmethod
    def of(cls, at: datetime) -> Month:
        """Returns the month that contains the time `at`."""
        return cls(at.astimezone(UTC).date().replace(day=1))

    @property
    def next(self) -> Month:
        """The following month."""
        return Month((self.first + timedelta(days=31)).replace(day=1))

    @property
    def starts_at(self) -> datetime:
        """The first moment of the month."""
        return datetime.combine(self.first, time(), UTC)

    @property
    def ends_at(self) -> datetime:
        """The first moment after the month."""
        return self.next.starts_at

    @property
    def days(self) -> int:
        """The number of days in the month."""
        return (self.next.first - self.first).days

    def days_since(self, at: datetime) -> int:
        """Returns how many days of the month are left at `at`, its own day included.

        All days if `at` is before the month. `at` must be before the end of the month.
        """
        return min(self.days, (self.next.first - at.astimezone(UTC).date()).days)

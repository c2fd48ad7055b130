"""Meters: count what a workspace is billed for, from `since` (inclusive) to `until` (exclusive)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime

from app import sql
from app.database import count, rows
from app.domain.billing.months import Month
from app.lib import ids


@dataclass(frozen=True, slots=True)
class Rows:
    """Counts the rows of a table for which the condition `billed` holds.

    The table needs an index on workspace_id and `column`. `prefix`: of the ids in the column, which contain the time at
    which each row was made; None if the column is a time.
    """

    table: str
    prefix: str | None
    billed: str = "true"
    column: str = "id"

    def add_to_day(self, meter: str, day: date, since: datetime, until: datetime) -> int:
        """Adds each workspace's rows to the day; returns how many amounts changed. Not safe to repeat."""
        return count(
            f"""
            INSERT INTO usage_days (workspace_id, day, meter, amount)
            SELECT workspace_id, %s, %s, count(*) FROM {self.table} WHERE {self._within} GROUP BY workspace_id
            ON CONFLICT (workspace_id, day, meter) DO UPDATE SET amount = usage_days.amount + excluded.amount
            """,
            (day, meter, *self._bounds(since, until)),
        )

    def count_more(self, workspace_id: str, month: Month, since: datetime, until: datetime) -> int:
        """Returns the number of the workspace's rows in the range."""
        counted = f"SELECT count(*) FROM {self.table} WHERE workspace_id = %s AND {self._within}"
        return int(rows(counted, (workspace_id, *self._bounds(since, until)))[0][0])

    @property
    def _within(self) -> str:
        return f"{self.column} >= %s AND {self.column} < %s AND {self.billed}"

    def _bounds(self, since: datetime, until: datetime) -> tuple[object, object]:
        return (ids.bound(self.prefix, since), ids.bound(self.prefix, until)) if self.prefix else (since, until)


class ActiveContacts:
    """Counts each contact once in a month in which it had an event other than its deletion.

    The contact counts on the day of its first event, so that days add up to months. Events are counted because they
    remain when a contact is deleted.
    """

    def add_to_day(self, meter: str, day: date, since: datetime, until: datetime) -> int:
        """Adds the contacts that are new in the month to the day; returns how many amounts changed."""
        bounds = {"low": ids.bound("evt", since), "high": ids.bound("evt", until)}
        return count(
            sql.load("add_active_contacts"), {"month": day.replace(day=1), "day": day, "meter": meter} | bounds
        )

    def count_more(self, workspace_id: str, month: Month, since: datetime, until: datetime) -> int:
        """Returns the number of contacts with events in the range that do not count for the month yet."""
        bounds = {"low": ids.bound("evt", since), "high": ids.bound("evt", until)}
        parameters = {"workspace_id": workspace_id, "month": month.first} | bounds
        return int(rows(sql.load("count_active_contacts"), parameters)[0][0])


Meter = Rows | ActiveContacts

METERS: Mapping[str, Meter] = {
    "active_contacts": ActiveContacts(),
    # A message counts when it is first known to be sent, once: it may wait for days before that.
    "messages": Rows("messages", None, column="sent_at"),
    "runs": Rows("runs", "run", billed="reason IS DISTINCT FROM 'reentry'"),  # such a run never began
    "deliveries": Rows("deliveries", "dlv"),
}

"""Meters: what a workspace is billed for, and how it is counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Protocol

from app import sql
from app.database import count, rows
from app.lib.months import Month


class Meter(Protocol):
    """Counts by the identifiers of a table, from `low` (inclusive) to `high` (exclusive)."""

    @property
    def prefix(self) -> str:
        """The prefix of those identifiers."""

    def add_to_day(self, meter: str, day: date, low: str, high: str) -> int:
        """Adds to the amount of every workspace for that day; returns how many changed. Repeating it counts twice."""

    def count_more(self, workspace_id: str, month: Month, low: str, high: str) -> int:
        """The amount of one workspace that has not yet been added for the month."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Counts the rows of a table, which needs an index on workspace_id and id; of these, those that are `billed`."""

    table: str
    prefix: str
    billed: str = "true"

    def add_to_day(self, meter: str, day: date, low: str, high: str) -> int:
        """Adds the new rows of each workspace to its amount of that day; returns how many amounts changed."""
        return count(
            f"""
            INSERT INTO usage_days (workspace_id, day, meter, amount)
            SELECT workspace_id, %s, %s, count(*) FROM {self.table}
            WHERE id >= %s AND id < %s AND {self.billed} GROUP BY workspace_id
            ON CONFLICT (workspace_id, day, meter) DO UPDATE SET amount = usage_days.amount + excluded.amount
            """,
            (day, meter, low, high),
        )

    def count_more(self, workspace_id: str, month: Month, low: str, high: str) -> int:
        """The number of the workspace's rows in the range."""
        within = f"workspace_id = %s AND id >= %s AND id < %s AND {self.billed}"
        return int(rows(f"SELECT count(*) FROM {self.table} WHERE {within}", (workspace_id, low, high))[0][0])


@dataclass(frozen=True, slots=True)
class ActiveContacts:
    """Counts each contact once in a month in which it had an event other than its deletion.

    It counts on the day of its first event, so that days add up to months. It is counted from events, which remain
    when a contact is deleted.
    """

    prefix: str = "evt"

    def add_to_day(self, meter: str, day: date, low: str, high: str) -> int:
        """Adds the contacts that are new in the month to that day; returns how many amounts changed."""
        parameters = {"month": day.replace(day=1), "day": day, "meter": meter, "low": low, "high": high}
        return count(sql.load("add_active_contacts"), parameters)

    def count_more(self, workspace_id: str, month: Month, low: str, high: str) -> int:
        """The number of the workspace's contacts with events in the range that do not count for the month yet."""
        parameters = {"workspace_id": workspace_id, "month": month.first, "low": low, "high": high}
        return int(rows(sql.load("count_active_contacts"), parameters)[0][0])


# None: Bellhop has nothing of this kind yet, so its usage is 0.
METERS: Mapping[str, Meter | None] = {
    "active_contacts": ActiveContacts(),
    "messages": None,
    "runs": Rows("runs", "run", billed="reason IS DISTINCT FROM 'reentry'"),  # such a run never began
    "deliveries": Rows("deliveries", "dlv"),
}

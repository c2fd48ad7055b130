"""Meters: what is counted of a workspace, and from what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Protocol

from app import sql
from app.database import count, rows
from app.lib.months import Month


class Meter(Protocol):
    """Counts what the identifiers of a table say was made in a time: from `low` up to, and without, `high`."""

    @property
    def prefix(self) -> str:
        """That of the identifiers."""

    def add_to_day(self, meter: str, day: date, low: str, high: str) -> int:
        """Adds what every workspace did to its amount of that day; returns how many changed. Not to be repeated."""

    def count_more(self, workspace_id: str, month: Month, low: str, high: str) -> int:
        """What one workspace did beyond what has been added for the month."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Every row of a table counts. The table has an index on workspace_id and id."""

    table: str
    prefix: str

    def add_to_day(self, meter: str, day: date, low: str, high: str) -> int:
        return count(
            f"""
            INSERT INTO usage_days (workspace_id, day, meter, amount)
            SELECT workspace_id, %s, %s, count(*) FROM {self.table} WHERE id >= %s AND id < %s GROUP BY workspace_id
            ON CONFLICT (workspace_id, day, meter) DO UPDATE SET amount = usage_days.amount + excluded.amount
            """,
            (day, meter, low, high),
        )

    def count_more(self, workspace_id: str, month: Month, low: str, high: str) -> int:
        counted = f"SELECT count(*) FROM {self.table} WHERE workspace_id = %s AND id >= %s AND id < %s"
        return int(rows(counted, (workspace_id, low, high))[0][0])


@dataclass(frozen=True, slots=True)
class ActiveContacts:
    """Every contact counts once in a month in which it had an event, other than its deletion.

    It is added to the first day on which it had one, so that the days of a month add up to its contacts. The
    identifiers of the events say so, and they stay when a contact is deleted.
    """

    prefix: str = "evt"

    def add_to_day(self, meter: str, day: date, low: str, high: str) -> int:
        parameters = {"month": day.replace(day=1), "day": day, "meter": meter, "low": low, "high": high}
        return count(sql.load("add_active_contacts"), parameters)

    def count_more(self, workspace_id: str, month: Month, low: str, high: str) -> int:
        parameters = {"workspace_id": workspace_id, "month": month.first, "low": low, "high": high}
        return int(rows(sql.load("count_active_contacts"), parameters)[0][0])


# None: there is nothing of the kind in Bellhop yet, so none of it was used.
METERS: Mapping[str, Meter | None] = {
    "active_contacts": ActiveContacts(),
    "messages": None,
    "runs": None,
    "deliveries": Rows("deliveries", "dlv"),
}

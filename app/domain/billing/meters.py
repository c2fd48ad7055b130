"""Meters: what a workspace is billed for, and how it is counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Protocol

from app import sql
from app.database import count, rows
from app.domain.billing.months import Month
from app.lib import ids


class Meter(Protocol):
    """Counts what was made or done from `since` (inclusive) to `until` (exclusive)."""

    def add_to_day(self, meter: str, day: date, since: datetime, until: datetime) -> int:
        """Adds to the amount of every workspace for that day; returns how many changed. Repeating it counts twice."""

    def count_more(self, workspace_id: str, month: Month, since: datetime, until: datetime) -> int:
        """The amount of one workspace that has not yet been added for the month."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Counts the rows of a table, which needs an index on workspace_id and id; of these, those that are `billed`.

    `prefix` is that of their identifiers, which say when each was made.
    """

    table: str
    prefix: str
    billed: str = "true"

    def add_to_day(self, meter: str, day: date, since: datetime, until: datetime) -> int:
        """Adds the new rows of each workspace to its amount of that day; returns how many amounts changed."""
        return _add(self.table, f"id >= %s AND id < %s AND {self.billed}", meter, day, self._bounds(since, until))

    def count_more(self, workspace_id: str, month: Month, since: datetime, until: datetime) -> int:
        """The number of the workspace's rows in the range."""
        low, high = self._bounds(since, until)
        within = f"workspace_id = %s AND id >= %s AND id < %s AND {self.billed}"
        return int(rows(f"SELECT count(*) FROM {self.table} WHERE {within}", (workspace_id, low, high))[0][0])

    def _bounds(self, since: datetime, until: datetime) -> tuple[str, str]:
        return ids.bound(self.prefix, since), ids.bound(self.prefix, until)


class ActiveContacts:
    """Counts each contact once in a month in which it had an event other than its deletion.

    It counts on the day of its first event, so that days add up to months. It is counted from events, which remain
    when a contact is deleted.
    """

    def add_to_day(self, meter: str, day: date, since: datetime, until: datetime) -> int:
        """Adds the contacts that are new in the month to that day; returns how many amounts changed."""
        bounds = {"low": ids.bound("evt", since), "high": ids.bound("evt", until)}
        return count(
            sql.load("add_active_contacts"), {"month": day.replace(day=1), "day": day, "meter": meter} | bounds
        )

    def count_more(self, workspace_id: str, month: Month, since: datetime, until: datetime) -> int:
        """The number of the workspace's contacts with events in the range that do not count for the month yet."""
        bounds = {"low": ids.bound("evt", since), "high": ids.bound("evt", until)}
        parameters = {"workspace_id": workspace_id, "month": month.first} | bounds
        return int(rows(sql.load("count_active_contacts"), parameters)[0][0])


class SentMessages:
    """Counts messages when they are first known to be sent, each once: a message may wait for days before it is."""

    def add_to_day(self, meter: str, day: date, since: datetime, until: datetime) -> int:
        """Adds the messages sent of each workspace to its amount of that day; returns how many amounts changed."""
        return _add("messages", "sent_at >= %s AND sent_at < %s", meter, day, (since, until))

    def count_more(self, workspace_id: str, month: Month, since: datetime, until: datetime) -> int:
        """The number of messages that the workspace has sent in the time."""
        sent = "SELECT count(*) FROM messages WHERE workspace_id = %s AND sent_at >= %s AND sent_at < %s"
        return int(rows(sent, (workspace_id, since, until))[0][0])


METERS: Mapping[str, Meter] = {
    "active_contacts": ActiveContacts(),
    "messages": SentMessages(),
    "runs": Rows("runs", "run", billed="reason IS DISTINCT FROM 'reentry'"),  # such a run never began
    "deliveries": Rows("deliveries", "dlv"),
}


def _add(table: str, condition: str, meter: str, day: date, bounds: tuple[object, object]) -> int:
    return count(
        f"""
        INSERT INTO usage_days (workspace_id, day, meter, amount)
        SELECT workspace_id, %s, %s, count(*) FROM {table} WHERE {condition} GROUP BY workspace_id
        ON CONFLICT (workspace_id, day, meter) DO UPDATE SET amount = usage_days.amount + excluded.amount
        """,
        (day, meter, *bounds),
    )

"""Dates of contacts: when each is due next, once or yearly, and which values cannot be read."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime, time, timedelta
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from app.database import rows
from app.domain.triggers import timed_triggers
from app.domain.triggers.conditions import CUSTOM
from app.domain.triggers.timed_triggers import Trigger
from app.lib import time_zones, typed_answers

UTC = ZoneInfo("UTC")
# The most contacts that are counted for one trigger with unreadable dates.
MOST_COUNTED = 1_000
# The most results for one contact, or for one automation.
MOST_TOLD = 20


class Coming(NamedTuple):
    """A date that is due next, and when the trigger starts a run for it."""

    day: date
    at: datetime


def field_of(trigger: Trigger) -> str:
    """Returns the name of the custom field that holds the date."""
    return str(trigger["date"]).removeprefix(CUSTOM)


def next_after(trigger: Trigger, value: Any, zone: ZoneInfo, after: datetime, fired_for: date | None) -> Coming | None:
    """Returns the trigger's first date that is due after `after`; None if there is none.

    `value`: the custom field's value, an RFC 3339 time (only its day counts) or a date that `ask` can read.
    `fired_for`, the date for which the trigger fired last, is not repeated; for yearly triggers, nor is its year. In a
    year without 29 February, 28 February is used.
    """
    day, is_yearly = _day(value, zone), trigger.get("every") == "year"
    if day is None:
        return None
    offset, clock = timedelta(days=trigger.get("offset_days", 0)), time.fromisoformat(trigger["at"])
    for each in _anniversaries(day, after) if is_yearly else [day]:
        at = time_zones.instant_of(each + offset, clock, zone)
        if fired_for is not None and (each.year <= fired_for.year if is_yearly else each == fired_for):
            continue
        if at > after:
            return Coming(each, at)
    return None


def is_readable(value: Any) -> bool:
    """Returns whether the value of a custom field can be read as a date."""
    return _day(value, UTC) is not None


class Unreadable(NamedTuple):
    """A trigger that cannot read the dates of some contacts. `number` stops at MOST_COUNTED."""

    trigger: Trigger
    number: int
    contact_id: str

    @property
    def key(self) -> str:
        """The trigger's key, as `timed_triggers.key_of` makes it."""
        return timed_triggers.key_of(self.trigger)

    @property
    def detail(self) -> str:
        """The problem as a sentence for members."""
        amount = "More than 999" if self.number == MOST_COUNTED else f"{self.number:,}"
        whose = f"{amount} contact has" if self.number == 1 else f"{amount} contacts have"
        field = field_of(self.trigger)
        return f"{whose} a '{field}' that is no date, so nothing starts for them, such as {self.contact_id}."


def unreadable_of_automation(automation_id: str) -> list[Unreadable]:
    """Returns the published triggers that cannot read some contacts' dates, up to MOST_TOLD."""
    found = rows(_OF_AUTOMATION, {"id": automation_id, "many": MOST_COUNTED, "most": MOST_TOLD})
    return [Unreadable(timed_triggers.trigger_of(key), number, contact_id) for key, number, contact_id in found]


def unreadable_of_contact(contact_id: str) -> dict[str, list[str]]:
    """Returns the automations that cannot read a date of the contact: up to MOST_TOLD names by field."""
    waiting: dict[str, list[str]] = {}
    for key, name in rows(_OF_CONTACT, (contact_id, MOST_TOLD)):
        waiting.setdefault(field_of(timed_triggers.trigger_of(key)), []).append(name)
    return waiting


def _anniversaries(day: date, after: datetime) -> Iterable[date]:
    # Two years early and three late: the offset may shift the time by up to a year, in both directions.
    first = max(day.year, after.year - 2)
    for year in range(first, first + 6):
        try:
            yield day.replace(year=year)
        except ValueError:
            yield day.replace(year=year, day=28)


def _day(value: Any, zone: ZoneInfo) -> date | None:
    """Returns the day of a date, or of a time in `zone`; None for other values and for extreme years."""
    if not isinstance(value, str):
        return None
    try:
        given = datetime.fromisoformat(value.strip().upper())
        day = (given if given.tzinfo is None else given.astimezone(zone)).date()
    except OverflowError:
        return None
    except ValueError:
        try:
            day = date.fromisoformat(typed_answers.date(value))
        except ValueError:
            return None
    return day if 2 < day.year < 9990 else None


_OF_AUTOMATION = """
    SELECT key, count(*), min(contact_id) FROM (
        SELECT key, contact_id FROM timed_triggers CROSS JOIN LATERAL (
            SELECT contact_id FROM waiting_starts
            WHERE automation_id = timed_triggers.automation_id AND key = timed_triggers.key AND is_unreadable
            LIMIT %(many)s) AS unreadable
        WHERE automation_id = %(id)s AND NOT is_ended) AS found
    GROUP BY key ORDER BY key LIMIT %(most)s
"""
_OF_CONTACT = """
    SELECT key, automations.name FROM waiting_starts JOIN automations ON automations.id = automation_id
    WHERE contact_id = %s AND is_unreadable ORDER BY automations.name, key LIMIT %s
"""

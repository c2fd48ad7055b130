"""When the dates of contacts come."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from app.domain.triggers.dates import next_after

YEARLY = {"date": "contact.custom_fields.birthday", "every": "year", "at": "09:00"}
ONCE = {"date": "contact.custom_fields.ends", "at": "09:00"}
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def comes(trigger: Any, value: Any, zone: str = "UTC", after: datetime = NOW, fired_for: date | None = None) -> Any:
    found = next_after(trigger, value, ZoneInfo(zone), after, fired_for)
    return found and f"{found.at:%Y-%m-%d %H:%M}"


@pytest.mark.parametrize(
    ("value", "at"),
    [
        ("1990-11-21", "2027-11-21 09:00"),  # today, but earlier
        ("1990-11-22", "2026-11-22 09:00"),
        ("1990-01-01", "2027-01-01 09:00"),
        ("2030-05-05", "2030-05-05 09:00"),
        ("2050-05-05", "2050-05-05 09:00"),
        ("1992-02-29", "2027-02-28 09:00"),
        (" 1990-11-22T23:30:00Z ", "2026-11-22 09:00"),
        ("1990-11-22T10:00:00", "2026-11-22 09:00"),
        ("0001-11-22", None),
        ("9999-11-22", None),
        ("9999-12-31T23:00:00-05:00", None),
        ("22.11.1990", "2026-11-22 09:00"),
        ("11/22/1990", "2026-11-22 09:00"),
        ("22 November 1990", "2026-11-22 09:00"),
        ("11/12/1990", None),
        ("soon", None),
        ("", None),
        (19901122, None),
        (True, None),
        (None, None),
    ],
)
def test_a_date_comes_every_year(value: Any, at: str | None) -> None:
    assert comes(YEARLY, value) == at


def test_a_29_february_is_the_28th_in_other_years() -> None:
    days = [datetime(year, 1, 1, tzinfo=UTC) for year in (2027, 2028, 2029)]

    assert [comes(YEARLY, "1992-02-29", after=day)[:10] for day in days] == ["2027-02-28", "2028-02-29", "2029-02-28"]


@pytest.mark.parametrize(
    ("value", "at"), [("2026-11-22", "2026-11-22 09:00"), ("2026-11-21", None), ("1990-11-22", None)]
)
def test_or_once(value: str, at: str | None) -> None:
    assert comes(ONCE, value) == at


@pytest.mark.parametrize(
    ("offset_days", "at"),
    [
        (-3, "2026-12-29 09:00"),
        (3, "2027-01-04 09:00"),
        (-365, "2027-01-01 09:00"),
        (365, "2027-01-01 09:00"),
        (-40, "2026-11-22 09:00"),
        (-41, "2027-11-21 09:00"),
    ],
)
def test_days_earlier_or_later(offset_days: int, at: str) -> None:
    assert comes(YEARLY | {"offset_days": offset_days}, "1990-01-01") == at


@pytest.mark.parametrize(
    ("zone", "value", "clock", "at"),
    [
        ("Europe/Berlin", "1990-07-01", "09:00", "2027-07-01 07:00"),
        ("Europe/Berlin", "1990-12-01", "09:00", "2026-12-01 08:00"),
        ("America/New_York", "1990-12-01", "22:00", "2026-12-02 03:00"),
        ("Pacific/Kiritimati", "1990-12-01", "09:00", "2026-11-30 19:00"),
        ("Europe/Berlin", "1990-03-28", "02:30", "2027-03-28 01:30"),  # the clock skips it
        ("Europe/Berlin", "1990-10-31", "02:30", "2027-10-31 00:30"),  # it comes twice
        ("America/New_York", "1990-12-01T02:00:00Z", "09:00", "2026-11-30 14:00"),  # a time of the day before
    ],
)
def test_the_clock_is_that_of_the_zone(zone: str, value: str, clock: str, at: str) -> None:
    assert comes(YEARLY | {"at": clock}, value, zone) == at


@pytest.mark.parametrize(
    ("trigger", "value", "fired_for", "at"),
    [
        (YEARLY, "1990-11-22", date(2026, 11, 20), "2027-11-22 09:00"),  # the date has changed since
        (YEARLY, "1990-11-22", date(2025, 11, 22), "2026-11-22 09:00"),
        (YEARLY | {"offset_days": -40}, "1990-01-01", date(2027, 1, 1), "2027-11-22 09:00"),
        (ONCE, "2026-11-22", date(2026, 11, 22), None),
        (ONCE, "2026-11-23", date(2026, 11, 22), "2026-11-23 09:00"),
    ],
)
def test_neither_a_day_nor_its_year_comes_twice(trigger: Any, value: str, fired_for: date, at: str | None) -> None:
    assert comes(trigger, value, fired_for=fired_for) == at

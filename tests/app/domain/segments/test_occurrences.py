"""Occurrences of a schedule, by the clock of a time zone."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.segments.schedules import next_after
from app.domain.triggers.timed_triggers import WEEKDAYS
from app.lib import time_zones

BERLIN = ZoneInfo("Europe/Berlin")
ZONES = st.sampled_from(
    [
        *("UTC", "Europe/Berlin", "America/Sao_Paulo", "Africa/Cairo", "Australia/Lord_Howe", "Pacific/Apia"),
        *("America/St_Johns", "Asia/Kathmandu", "Pacific/Kiritimati", "America/Havana", "Africa/Casablanca"),
    ]
).map(ZoneInfo)
CLOCKS = st.times().map(lambda clock: clock.strftime("%H:%M"))
TRIGGERS = st.one_of(
    st.just({"every": "day"}),
    st.sampled_from(WEEKDAYS).map(lambda on: {"every": "week", "on": on}),
    st.integers(1, 31).map(lambda on: {"every": "month", "on": on}),
)
TIMES = st.datetimes(datetime(2005, 1, 1), datetime(2035, 1, 1)).map(lambda at: at.replace(tzinfo=UTC))


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


@pytest.mark.parametrize(
    ("trigger", "after", "expected"),
    [
        ({"every": "day"}, "2026-11-25T07:59:59Z", "2026-11-25T08:00Z"),
        ({"every": "day"}, "2026-11-25T08:00:00Z", "2026-11-26T08:00Z"),
        ({"every": "week", "on": "monday"}, "2026-11-25T12:00Z", "2026-11-30T08:00Z"),
        ({"every": "week", "on": "wednesday"}, "2026-11-25T07:00Z", "2026-11-25T08:00Z"),
        ({"every": "month", "on": 1}, "2026-12-15T12:00Z", "2027-01-01T08:00Z"),
        ({"every": "month", "on": 31}, "2027-01-31T08:00Z", "2027-02-28T08:00Z"),
        ({"every": "month", "on": 31}, "2027-02-28T08:00Z", "2027-03-31T07:00Z"),
        ({"every": "month", "on": 29}, "2028-02-01T08:00Z", "2028-02-29T08:00Z"),
        # Summer time begins, and ends.
        ({"every": "day"}, "2026-03-28T12:00Z", "2026-03-29T07:00Z"),
        ({"every": "day"}, "2026-10-24T12:00Z", "2026-10-25T08:00Z"),
        # The clock skips 02:30, and shows it twice.
        ({"every": "day", "at": "02:30"}, "2026-03-28T12:00Z", "2026-03-29T01:30Z"),
        ({"every": "day", "at": "02:30"}, "2026-03-29T01:30Z", "2026-03-30T00:30Z"),
        ({"every": "day", "at": "02:30"}, "2026-10-24T12:00Z", "2026-10-25T00:30Z"),
        ({"every": "day", "at": "02:30"}, "2026-10-25T00:30Z", "2026-10-26T01:30Z"),
    ],
)
def test_what_comes_next_in_berlin(trigger: dict[str, Any], after: str, expected: str) -> None:
    assert next_after({"at": "09:00", **trigger}, BERLIN, at(after)) == at(expected)


@given(TRIGGERS, CLOCKS, ZONES, TIMES)
def test_each_day_of_a_schedule_comes_once(
    trigger: dict[str, Any], clock: str, zone: ZoneInfo, first: datetime
) -> None:
    trigger = {**trigger, "at": clock}
    found = [first]
    for _ in range(40):
        found.append(next_after(trigger, zone, found[-1]))

    assert all(one < other for one, other in pairwise(found))
    hours, minutes = map(int, clock.split(":"))
    days: set[date] = set()
    for moment in found[1:]:
        # A skipped time is later by the clock, at most by a day where a zone has moved across the date line.
        local = moment.astimezone(zone)
        wanted = [
            day
            for day in (local.date() - timedelta(days=1), local.date())
            if time_zones.instant_of(day, datetime(2026, 1, 1, hours, minutes).time(), zone) == moment
        ]
        assert wanted
        days.update(wanted)
    assert len(days) >= len(found) - 1
    if trigger["every"] == "day":
        assert max(days) - min(days) == timedelta(days=len(days) - 1)


@given(TRIGGERS, CLOCKS, ZONES, TIMES, st.timedeltas(timedelta(0), timedelta(days=40)))
def test_nothing_lies_between_a_time_and_what_comes_next(
    trigger: dict[str, Any], clock: str, zone: ZoneInfo, first: datetime, later: timedelta
) -> None:
    trigger = {**trigger, "at": clock}
    expected = next_after(trigger, zone, first)

    between = min(first + later, expected - timedelta(microseconds=1))

    assert next_after(trigger, zone, max(first, between)) == expected

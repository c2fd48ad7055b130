from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from app.domain.billing.months import Month

AHEAD, BEHIND = timezone(timedelta(hours=14)), timezone(timedelta(hours=-12))


@pytest.mark.parametrize(
    ("at", "first"),
    [
        (datetime(2026, 11, 1, tzinfo=UTC), date(2026, 11, 1)),
        (datetime(2026, 11, 30, 23, 59, 59, 999_999, tzinfo=UTC), date(2026, 11, 1)),
        (datetime(2026, 12, 1, 13, 59, tzinfo=AHEAD), date(2026, 11, 1)),
        (datetime(2026, 11, 30, 12, 0, tzinfo=BEHIND), date(2026, 12, 1)),
        (datetime(2028, 2, 29, 23, 59, tzinfo=UTC), date(2028, 2, 1)),
    ],
    ids=str,
)
def test_a_moment_is_in_the_month_that_it_is_in_utc(at: datetime, first: date) -> None:
    assert Month.of(at) == Month(first)


@pytest.mark.parametrize(
    ("first", "next_first", "days"),
    [
        (date(2026, 1, 1), date(2026, 2, 1), 31),
        (date(2026, 2, 1), date(2026, 3, 1), 28),
        (date(2028, 2, 1), date(2028, 3, 1), 29),
        (date(2100, 2, 1), date(2100, 3, 1), 28),
        (date(2026, 4, 1), date(2026, 5, 1), 30),
        (date(2026, 12, 1), date(2027, 1, 1), 31),
    ],
    ids=str,
)
def test_a_month_ends_where_the_next_begins(first: date, next_first: date, days: int) -> None:
    month = Month(first)

    assert (month.next, month.days) == (Month(next_first), days)
    assert month.ends_at == month.next.starts_at == datetime(next_first.year, next_first.month, 1, tzinfo=UTC)


def test_hours_are_neither_lost_nor_gained_where_clocks_are_changed() -> None:
    march, october = Month(date(2026, 3, 1)), Month(date(2026, 10, 1))

    assert march.ends_at - march.starts_at == october.ends_at - october.starts_at == timedelta(days=31)


@pytest.mark.parametrize(
    ("at", "days"),
    [
        (datetime(2027, 5, 9, tzinfo=UTC), 29),
        (datetime(2028, 2, 1, tzinfo=UTC), 29),
        (datetime(2028, 2, 2, tzinfo=UTC), 28),
        (datetime(2028, 2, 29, 23, 59, tzinfo=UTC), 1),
        (datetime(2028, 2, 2, 1, 0, tzinfo=AHEAD), 29),
    ],
    ids=str,
)
def test_the_day_on_which_something_begins_is_one_of_those_that_are_left(at: datetime, days: int) -> None:
    assert Month(date(2028, 2, 1)).days_since(at) == days

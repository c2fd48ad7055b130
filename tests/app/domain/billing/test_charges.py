from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from app.domain.billing import charges
from app.domain.billing.meters import METERS
from tests.billing import BEGIN, FEBRUARY, plan

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
NOTHING = dict.fromkeys(METERS, 0)


@pytest.mark.parametrize(
    ("used", "beyond", "quantity", "amount"),
    [
        (0, "0.005", 0, "0.00"),
        (2, "0.005", 0, "0.00"),
        (3, "0.005", 1, "0.01"),  # half a cent, up
        (4, "0.005", 2, "0.01"),
        (5, "0.005", 3, "0.02"),
        (3, "0.0049", 1, "0.00"),
        (3, "0.00499999", 1, "0.00"),
        (3, "0.00500001", 1, "0.01"),
        (1_000_000_002, "0.00001", 1_000_000_000, "10000.00"),
        (3, "0.1", 1, "0.10"),
        (9, None, 7, "0.00"),
    ],
)
def test_what_is_beyond_the_included_is_charged_to_the_cent(
    used: int, beyond: str | None, quantity: int, amount: str
) -> None:
    _, *lines = charges.lines(plan(beyond=beyond), NOTHING | {"deliveries": used}, FEBRUARY, LONG_AGO)

    assert [line.meter for line in lines] == list(METERS)
    charged = {line.meter: line for line in lines}["deliveries"]
    assert (charged.used, charged.included, charged.quantity, str(charged.amount)) == (used, 2, quantity, amount)
    assert charges.total(lines) == Decimal(amount)


def test_the_total_is_the_sum_of_rounded_lines() -> None:
    lines = charges.lines(plan("10.00", "0.005"), dict.fromkeys(METERS, 3), FEBRUARY, LONG_AGO)

    assert [str(line.amount) for line in lines] == ["10.00", "0.01", "0.01", "0.01", "0.01"]
    assert str(charges.total(lines)) == "10.04"


def test_a_month_without_use_costs_the_price_of_the_plan() -> None:
    assert str(charges.total(charges.lines(plan("10.00"), NOTHING, FEBRUARY, LONG_AGO))) == "10.00"
    assert str(charges.total(charges.lines(plan("0.00"), NOTHING, FEBRUARY, LONG_AGO))) == "0.00"


@pytest.mark.parametrize(
    ("made_at", "amount", "description"),
    [
        (BEGIN, "10.00", "Small plan"),
        (BEGIN.replace(hour=23, minute=59), "10.00", "Small plan"),
        (BEGIN.replace(day=2), "9.66", "Small plan, 28 of 29 days"),  # 9.6551…
        (BEGIN.replace(day=15, hour=23), "5.17", "Small plan, 15 of 29 days"),  # 5.1724…
        (BEGIN.replace(day=29, hour=23, minute=59), "0.34", "Small plan, 1 of 29 days"),  # 0.3448…
    ],
)
def test_the_first_month_costs_its_days(made_at: datetime, amount: str, description: str) -> None:
    first, *overages = charges.lines(plan("10.00"), dict.fromkeys(METERS, 2), FEBRUARY, made_at)

    assert (str(first.amount), first.description) == (amount, description)
    assert {line.quantity for line in overages} == {0}


def test_a_line_is_shown_without_an_exponent() -> None:
    _, line, *_ = charges.lines(plan(beyond="0.0000001"), NOTHING | {"active_contacts": 1002}, FEBRUARY, LONG_AGO)

    assert charges.represent(line) == {
        "description": "Active contacts beyond those included",
        "meter": "active_contacts",
        "used": 1002,
        "included": 2,
        "quantity": 1000,
        "unit_price": "0.0000001",
        "amount": "0.00",
    }

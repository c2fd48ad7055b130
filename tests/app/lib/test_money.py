from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.lib import money


@pytest.mark.parametrize(
    "text", ["0", "0.0000", "1", "19.9", "19.90", "0.01", "1000000", "999999999999999", "999999999999999.9999"]
)
def test_a_decimal_is_read_digit_for_digit(text: str) -> None:
    assert str(money.amount(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", ".", "1.", ".5", "1.5.0", "19,90", "1_000", "1 000", "1,000.00", "$19.90", "0x10"),
        *("-1", "-0", "+1", "\u22121", "1e3", "1E3", "1.5e-1", "NaN", "nan", "sNaN", "Infinity", "inf", "-inf", "None"),
        *("00", "01", "007.00", " 1", "1 ", "1\n", "\t1", "1\x00", "1.\n"),
        *("1.00000", "1000000000000000", "9" * 1000, "0." + "0" * 1000, "1" * 15 + ".12345"),
        *("١٩", "\uff11\uff19", "1.\uff19", "²", "1\u200b", "Ⅷ", "\u09ea"),
    ],
    ids=repr,
)
def test_anything_but_plain_digits_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"such as 19\.90"):
        money.amount(text)


@pytest.mark.parametrize(
    ("text", "currency", "exact"),
    [
        ("19.9", "EUR", "19.90"),
        ("19.90", "EUR", "19.90"),
        ("19", "EUR", "19.00"),
        ("0", "EUR", "0.00"),
        ("19.9000", "EUR", "19.90"),
        ("500", "JPY", "500"),
        ("500.00", "JPY", "500"),
        ("1.5", "BHD", "1.500"),
        ("1.2345", "CLF", "1.2345"),
        ("999999999999999.99", "EUR", "999999999999999.99"),
        ("999999999999999.9999", "CLF", "999999999999999.9999"),
    ],
)
def test_an_amount_has_the_decimal_places_of_its_currency(text: str, currency: str, exact: str) -> None:
    assert str(money.in_currency(money.amount(text), currency)) == exact


@pytest.mark.parametrize(
    ("text", "currency", "places"),
    [("0.001", "EUR", 2), ("19.999", "USD", 2), ("0.5", "JPY", 0), ("1.2345", "BHD", 3), ("19.9001", "EUR", 2)],
)
def test_an_amount_that_would_lose_digits_is_refused(text: str, currency: str, places: int) -> None:
    with pytest.raises(ValueError, match=f"{currency} has at most {places} decimal places"):
        money.in_currency(money.amount(text), currency)


@given(st.decimals(0, 10**15 - 1, places=2))
def test_every_amount_in_cents_comes_back_as_it_was(amount: Decimal) -> None:
    assert money.in_currency(money.amount(str(amount)), "EUR") == amount


@pytest.mark.parametrize("code", ["EUR", "USD", "GBP", "CHF", "JPY", "INR", "BRL", "NGN", "CNY", "VND"])
def test_currencies_of_the_world_are_known(code: str) -> None:
    assert code in money.DECIMAL_PLACES


@pytest.mark.parametrize("code", ["XXX", "XTS", "XAU", "XDR", "DEM", "BTC", "eur", ""])
def test_what_counts_no_money_is_no_currency(code: str) -> None:
    assert code not in money.DECIMAL_PLACES


def test_no_currency_has_more_places_than_an_amount_can() -> None:
    assert set(money.DECIMAL_PLACES.values()) == {0, 2, 3, 4}

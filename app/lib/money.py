"""Amounts of money: exact decimals with the decimal places of their currency (ISO 4217)."""

from __future__ import annotations

import re
from decimal import Decimal

from iso4217 import Currency

# Codes for which ISO 4217 defines no number of places, such as gold and the test code, are not money. JPY has 0.
DECIMAL_PLACES = {each.code: each.exponent for each in Currency if each.exponent is not None}
# No currency has more than four places. No signs or exponents: there is one way to write an amount.
PATTERN = r"(0|[1-9][0-9]{0,14})(\.[0-9]{1,4})?"


def amount(text: str) -> Decimal:
    """Parses an amount from 0 to less than 10^15. Raises ValueError with a sentence."""
    if not re.fullmatch(PATTERN, text):
        negative = "An amount is not negative. " if text.startswith("-") else ""
        raise ValueError(f"{negative}Give a decimal from 0 to 999999999999999.9999 as a string, such as 19.90.")
    return Decimal(text)


def in_currency(given: Decimal, currency: str) -> Decimal:
    """Returns `given` with its currency's places. Raises ValueError if that would lose digits."""
    places = DECIMAL_PLACES[currency]
    exact = given.quantize(Decimal(1).scaleb(-places))
    if exact != given:
        raise ValueError(f"An amount in {currency} has at most {places} decimal places.")
    return exact

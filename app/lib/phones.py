"""Phone numbers that can be written in more than one way."""

from __future__ import annotations

import re

E164 = re.compile(r"\+[1-9][0-9]{6,14}")

# Pairs of ways to write the same mobile number. Providers, carriers and people mix them, so searches must try both.
_WAYS = (
    # Brazil: mobile numbers got a ninth digit, a 9 before the others.
    (re.compile(r"(\+55[1-9][0-9])9([6-9][0-9]{7})"), r"\1\2"),
    (re.compile(r"(\+55[1-9][0-9])([6-9][0-9]{7})"), r"\g<1>9\2"),
    # Argentina: calls from abroad put a 9 after the country code of a mobile number.
    (re.compile(r"(\+54)9([0-9]{10})"), r"\1\2"),
    (re.compile(r"(\+54)([1-8][0-9]{9})"), r"\g<1>9\2"),
    # Mexico: until 2019, calls from abroad put a 1 after the country code of a mobile number.
    (re.compile(r"(\+52)1([0-9]{10})"), r"\1\2"),
    (re.compile(r"(\+52)([2-9][0-9]{9})"), r"\g<1>1\2"),
    # Ivory Coast: in 2021, mobile numbers got a prefix of two digits for their carrier. The second digit of the old
    # number identified the carrier.
    *(
        pair
        for carrier, digits in (("01", "0-3"), ("05", "4-6"), ("07", "7-9"))
        for pair in (
            (re.compile(rf"(\+225){carrier}([04-9][{digits}][0-9]{{6}})"), r"\1\2"),
            (re.compile(rf"(\+225)([04-9][{digits}][0-9]{{6}})"), rf"\g<1>{carrier}\2"),
        )
    ),
    # Benin: in 2024, all numbers got the prefix 01.
    (re.compile(r"(\+229)01([2-9][0-9]{7})"), r"\1\2"),
    (re.compile(r"(\+229)([2-9][0-9]{7})"), r"\g<1>01\2"),
)


def ways_to_write(phone: str) -> list[str]:
    """Returns the number (E.164) as given, and the other way to write it if there is one."""
    return [phone, *(found.expand(other) for way, other in _WAYS if (found := way.fullmatch(phone)))]

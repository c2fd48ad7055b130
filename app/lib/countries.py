"""Countries by their codes of two letters (ISO 3166): names, time zones, and their ways to write phone numbers."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import phonenumbers


@cache
def names() -> dict[str, str]:
    """The English names of the countries that have phone numbers, by their codes, in the order of the names."""
    known = {code: name for code, name in _table("iso3166.tab") if code in phonenumbers.SUPPORTED_REGIONS}
    return dict(sorted(known.items(), key=lambda item: item[1]))


def of_time_zone(zone: str) -> str:
    """The country of the time zone; "" if it belongs to none, as UTC does."""
    return _by_zone().get(zone, "")


def international(phone: str, country: str) -> str:
    """The number with the code of that country if it has none. As it is if it cannot be one, or has an extension."""
    try:
        number = phonenumbers.parse(phone, country)
    except phonenumbers.NumberParseException:
        return phone
    if number.extension or not phonenumbers.is_possible_number(number):
        return phone
    return phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)


@cache
def _by_zone() -> dict[str, str]:
    return {zone: code for code, _, zone in _table("zone.tab")}


def _table(name: str) -> list[list[str]]:
    """The rows of a table of the time zone database, whose cells are separated by tabs."""
    text = (files("tzdata") / "zoneinfo" / name).read_text()
    rows = [line.split("\t") for line in text.splitlines() if line and not line.startswith("#")]
    return [row[:3] for row in rows]

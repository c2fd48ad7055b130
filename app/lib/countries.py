"""Countries by ISO 3166 code: their names, time zones and formats of phone numbers."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import phonenumbers


@cache
def names() -> dict[str, str]:
    """Returns the English names of all countries with phone numbers, by code, sorted by name."""
    known = {code: name for code, name in _table("iso3166.tab") if code in phonenumbers.SUPPORTED_REGIONS}
    return dict(sorted(known.items(), key=lambda item: item[1]))


@cache
def of_time_zone(zone: str) -> str:
    """Returns the code of the country that has the time zone; "" if it belongs to none, like UTC."""
    return next((code for code, _, name in _table("zone.tab") if name == zone), "")


def international(phone: str, country: str) -> str:
    """Converts a phone number of that country to E.164.

    Returns it unchanged if it is not a possible number or has an extension. A number with a country code keeps its own.
    """
    try:
        number = phonenumbers.parse(phone, country)
    except phonenumbers.NumberParseException:
        return phone
    if number.extension or not phonenumbers.is_possible_number(number):
        return phone
    return phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)


def _table(name: str) -> list[list[str]]:
    """Returns the first three cells of each row in a table of the time zone database."""
    text = (files("tzdata") / "zoneinfo" / name).read_text()
    rows = [line.split("\t") for line in text.splitlines() if line and not line.startswith("#")]
    return [row[:3] for row in rows]

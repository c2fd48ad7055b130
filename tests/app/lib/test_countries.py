from __future__ import annotations

import pytest

from app.lib import countries


@pytest.mark.parametrize(
    ("phone", "country", "number"),
    [
        ("0664 1234567", "AT", "+436641234567"),
        ("+49 30 1234567", "AT", "+49301234567"),
        ("0049 30 1234567", "AT", "+49301234567"),
        ("(541) 754-3010", "US", "+15417543010"),
        ("0664 1234567 ext. 11", "AT", "0664 1234567 ext. 11"),
        ("12", "AT", "12"),
        ("nobody", "AT", "nobody"),
        ("", "AT", ""),
    ],
)
def test_a_national_number_gets_the_code_of_the_country(phone: str, country: str, number: str) -> None:
    assert countries.international(phone, country) == number


def test_countries_have_names_and_time_zones() -> None:
    assert (countries.names()["AT"], countries.of_time_zone("Europe/Vienna")) == ("Austria", "AT")
    assert (countries.of_time_zone("UTC"), countries.of_time_zone("Mars")) == ("", "")
    assert list(countries.names().values()) == sorted(countries.names().values())

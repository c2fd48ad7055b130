from __future__ import annotations

import pytest

from app.lib.phones import ways_to_write


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("+5511987654321", "+551187654321"),
        ("+5491123456789", "+541123456789"),
        ("+5215512345678", "+525512345678"),
        ("+2250102123456", "+22502123456"),
        ("+2250545123456", "+22545123456"),
        ("+2250707123456", "+22507123456"),
        ("+2290197123456", "+22997123456"),
    ],
)
def test_a_mobile_number_of_some_countries_is_written_in_two_ways(one: str, other: str) -> None:
    assert ways_to_write(one) == [one, other]
    assert ways_to_write(other) == [other, one]


@pytest.mark.parametrize(
    "phone",
    ["+4930123456", "+551133334444", "+2252722123456", "+2250745123456", "+12025550123", "+55119876", "+5411", "x"],
)
def test_any_other_number_is_written_in_one(phone: str) -> None:
    assert ways_to_write(phone) == [phone]

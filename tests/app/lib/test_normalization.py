from __future__ import annotations

import pytest

from app.lib import normalization


def wide(text: str) -> str:
    """The text in the full width of Chinese and Japanese."""
    return "".join(chr(ord(each) + 0xFEE0) for each in text)


@pytest.mark.parametrize(
    "text",
    [
        "+49 1512 3456789",
        "\u202a+49\xa01512\u20113456789\u202c",
        "\u200b+4915123456789\ufeff",
        "0049 1512 3456789",
        "00 49 1512 3456789",
        "+49\ufe0e1512 345\u034f67\u316489",
        "+49 (0)1512 3456789",
        "tel:+49-1512-3456789",
        wide("+4915123456789"),
        "٠٠٤٩١٥١٢٣٤٥٦٧٨٩",
    ],
)
def test_a_phone_number_is_read_as_people_write_it(text: str) -> None:
    assert normalization.phone(text) == "+4915123456789"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("+43 1 5550100 ext. 11", "ext. 11"),
        ("+43 1 5550100 x13", "x13"),
        ("+43 1 5550100;ext=14", "ext=14"),
        ("+43 1 5550100 Durchwahl 11", "Durchwahl 11"),
        ("+43 1 5550100 DW11", "DW11"),
        ("+43 1 5550100 доб. 11", "доб. 11"),
        ("+43 1 5550100 内線 11", "内線 11"),
        ("+43 1 5550100 #11", "11"),
        ("+43 1 5550100,,11", "11"),
        ("+43 1 5550100" + wide("x11"), "x11"),
        ("+43 1 5550100 or +43 1 5550101", "or +43 1 5550101"),
    ],
)
def test_a_phone_number_with_an_extension_is_refused_by_its_name(text: str, named: str) -> None:
    with pytest.raises(ValueError, match=rf"^Leave out .*{named.replace('+', '[+]')}.*: a contact is known by"):
        normalization.phone(text)


def test_letters_may_stand_for_digits_of_a_phone_number() -> None:
    assert normalization.phone("+1 800 FLOWERS") == "+18003569377"


@pytest.mark.parametrize(
    ("text", "number"), [("+225 07 12 34 56", "+2250707123456"), ("+229 97123456", "+2290197123456")]
)
def test_a_form_that_a_country_has_given_up_becomes_the_present_one(text: str, number: str) -> None:
    assert normalization.phone(text) == number


@pytest.mark.parametrize("text", ["49 1512 3456789", "+12 000", "000", "x", ""])
def test_what_is_no_phone_number_with_its_country_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        normalization.phone(text)

"""Which name somebody meant."""

from __future__ import annotations

import pytest

from app.lib.nearest_names import meant, nearest

FIELDS = ("email", "phone", "first_name", "last_name", "custom_fields")


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("firstName", "first_name"),
        ("emial", "email"),
        ("E-Mail", "email"),
        ("Last name", "last_name"),
        ("colour", None),
    ],
)
def test_the_nearest_name_has_another_spelling(name: str, found: str | None) -> None:
    assert nearest(name, FIELDS) == found


def test_a_sentence_says_what_was_meant() -> None:
    assert (meant("emial", FIELDS), meant("colour", FIELDS), meant(7, FIELDS)) == (" Did you mean 'email'?", "", "")

"""Which name somebody meant."""

from __future__ import annotations

from difflib import SequenceMatcher

import pytest

from app.lib.nearest_names import MOST_COMPARED, meant, nearest

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


def test_few_of_many_long_names_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []
    ratio = SequenceMatcher.ratio
    monkeypatch.setattr(SequenceMatcher, "ratio", lambda self: compared.append(self.a) or ratio(self))
    # Anagrams of one another, which nothing but a full comparison tells apart.
    known = [f"{'abcdefgh' * 11}{number:04}" for number in range(1_000)]

    assert nearest("hgfedcba" * 11 + "0999", known) is None
    assert nearest("abcdefgh" * 11 + "x999", known) == known[999]
    assert len(compared) <= 4 * MOST_COMPARED  # difflib compares what is near twice

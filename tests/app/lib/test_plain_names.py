"""Text of any script as a plain name."""

from __future__ import annotations

import pytest

from app.lib.plain_names import plain


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Öffnungszeiten", "offnungszeiten"),
        ("O\u0308ffnungszeiten", "offnungszeiten"),
        ("Straße, Łódź", "strasse_lodz"),
        ("İptal", "iptal"),
        ("はい", "hai"),
        ("٣", "3"),
        ("中文", "4e2d6587"),
        ("No, thanks!", "no_thanks"),
        ("👍", ""),
    ],
)
def test_letters_of_any_script_make_a_name(text: str, name: str) -> None:
    assert plain(text, 40) == name


@pytest.mark.parametrize(("one", "other"), [("да", "нет"), ("نعم", "لا"), ("예", "아니요"), ("כן", "לא")])
def test_different_words_make_different_names(one: str, other: str) -> None:
    assert "" != plain(one, 40) != plain(other, 40) != ""


def test_a_long_name_is_cut() -> None:
    assert plain("Wie wäre es mit Freitag?", 16) == "wie_ware_es_mit"

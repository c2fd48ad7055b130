from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.lib import cursors

KEY = b"k" * 32
LAST = ["2026-11-01 10:00:00.000001+00:00", "sal_01kaj5bd40e6rr3f5y2kq0w9xz"]


@pytest.mark.parametrize("last", [LAST, LAST[1:], LAST[::-1], [""], ["", ""], ["Zoë", "é"]], ids=str)
def test_a_cursor_gives_back_what_was_sealed(last: list[str]) -> None:
    assert cursors.unseal(KEY, "contacts", cursors.seal(KEY, "contacts", last)) == last


def test_what_is_of_the_list_and_what_of_the_row_cannot_be_told_otherwise() -> None:
    cursor = cursors.seal(KEY, "contacts\nfirst", ["second"])

    with pytest.raises(ValueError, match="cursor"):
        cursors.unseal(KEY, "contacts", cursor)
    assert cursor[:20] != cursors.seal(KEY, "contacts", ["first", "second"])[:20]


@pytest.mark.parametrize(("key", "scope"), [(b"x" * 32, "contacts"), (KEY, "jobs"), (KEY, "")])
def test_a_cursor_of_another_key_or_list_is_refused(key: bytes, scope: str) -> None:
    cursor = cursors.seal(KEY, "contacts", LAST)

    with pytest.raises(ValueError, match="cursor"):
        cursors.unseal(key, scope, cursor)


@given(st.text(max_size=100))
def test_any_text_is_refused_with_a_value_error(text: str) -> None:
    assert refused(text)


@given(st.integers(0, 105), st.sampled_from("abcXYZ019-_="))
def test_a_cursor_with_a_character_altered_is_refused(place: int, character: str) -> None:
    cursor = cursors.seal(KEY, "contacts", LAST)
    altered = cursor[:place] + character + cursor[place + 1 :]

    assert altered == cursor or refused(altered)


def refused(cursor: str) -> bool:
    try:
        cursors.unseal(KEY, "contacts", cursor)
    except ValueError:
        return True
    return False


def test_a_cursor_fits_into_a_query_as_it_is() -> None:
    assert cursors.seal(KEY, "contacts", LAST).replace("-", "").replace("_", "").isalnum()

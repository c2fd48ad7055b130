from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.lib import cursors

KEY = b"k" * 32
LAST = "con_01kaj5bd40e6rr3f5y2kq0w9xz"


def test_a_cursor_gives_back_what_was_sealed() -> None:
    assert cursors.unseal(KEY, "contacts", cursors.seal(KEY, "contacts", LAST)) == LAST


@pytest.mark.parametrize(("key", "scope"), [(b"x" * 32, "contacts"), (KEY, "jobs"), (KEY, "")])
def test_a_cursor_of_another_key_or_list_is_refused(key: bytes, scope: str) -> None:
    cursor = cursors.seal(KEY, "contacts", LAST)

    with pytest.raises(ValueError, match="cursor"):
        cursors.unseal(key, scope, cursor)


@given(st.text(max_size=100))
def test_any_text_is_refused_with_a_value_error(text: str) -> None:
    assert refused(text)


@given(st.integers(0, 60), st.sampled_from("abcXYZ019-_="))
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

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as some

from app.lib import cells

# Texts of what the rules are about.
TRICKY = some.text(alphabet="'=+-@;,\t\r\n \"\ufeff\uff1d1.a")


@given(some.one_of(TRICKY, some.text()))
def test_a_guarded_cell_is_read_back_as_it_was(text: str) -> None:
    assert cells.unguarded(cells.guarded(text)) == text


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        *[("'+436641234567", "+436641234567"), ("'6543210987654", "6543210987654"), ("'08010", "08010")],
        *[("'t Hooft", "'t Hooft"), ("'90s", "'90s"), ("it's", "it's"), ("+1", "+1"), ("", "")],
    ],
)  # fmt: skip
def test_the_apostrophe_of_a_spreadsheet_is_no_part_of_the_text(cell: str, text: str) -> None:
    assert cells.unguarded(cell) == text


@pytest.mark.parametrize(
    ("cell", "tags"),
    [
        *[("a;b,c", ["a", "b", "c"]), ('"VIP","Winter 2024"', ["VIP", "Winter 2024"]), ('"a;b"; c', ["a;b", " c"])],
        *[('"a ""b""",c', ['a "b"', "c"]), ('5" screen,"b', ['5" screen', '"b']), ("; ,", []), ('"",a', ["a"])],
        ("* a ::: b", ["* a ", " b"]),
    ],
)  # fmt: skip
def test_tags_are_divided(cell: str, tags: list[str]) -> None:
    assert cells.tags(cell) == tags


@pytest.mark.parametrize("piece", ["\t", "'", '"', ";", "\n'", '"";', '"a;', "1", "' "])
def test_the_time_that_a_cell_takes_is_linear(piece: str) -> None:
    text = "'" + piece * 100_000
    began = time.thread_time()

    cells.guarded(text)
    cells.unguarded(text)
    cells.tags(text)

    assert time.thread_time() - began < 2  # if it were quadratic, minutes

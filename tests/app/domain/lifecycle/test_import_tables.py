"""Import tables: what the pages export comes back, whatever people have written."""

from __future__ import annotations

import io
import json
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from app.domain.lifecycle import import_columns, import_tables, import_texts
from app.domain.lifecycle.import_columns import Mapping
from app.domain.lifecycle.import_texts import Lines
from app.errors import Invalid
from app.lib import ids
from app.web import lists

# Text as the API takes it. Spaces around a cell are no part of it.
TEXT = some.one_of(some.text(), some.text(alphabet="'=+-@;,\t\r\n \"[]{}1a")).filter(
    lambda text: text == unicodedata.normalize("NFC", text.strip()) and "\0" not in text and text.isprintable()
)
WRITTEN = some.text(alphabet="'=+-@;,\" []{}1aß\u00fc").map(str.strip)
TAGS = some.lists(WRITTEN.filter(bool), max_size=4, unique=True)
VALUES = some.one_of(WRITTEN.filter(bool), some.booleans(), some.integers(-(2**53), 2**53), some.floats(-1e15, 1e15))
FIELDS = {
    "external_id": some.none() | WRITTEN.filter(bool),
    "email": some.just("ann@example.com"),
    "phone": some.sampled_from([None, "+436641234567"]),
    "first_name": some.none() | TEXT.filter(bool),
    "last_name": some.none() | WRITTEN.filter(bool),
    "locale": some.sampled_from([None, "de-AT"]),
    "timezone": some.sampled_from([None, "Europe/Vienna"]),
    "tags": TAGS,
    "custom_fields": some.dictionaries(WRITTEN.filter(bool), VALUES, max_size=4),
    "opted_out": some.booleans(),
}
# In the order of the fields, in which exports write them.
CONTACTS = some.tuples(*FIELDS.values()).map(lambda values: dict(zip(FIELDS, values, strict=True)))


@pytest.mark.parametrize(
    ("cell", "is_out"), [("TRUE", True), ("Ja", True), ("sí", True), ("Não", False), ("n", False), ("0", False)]
)
def test_whether_somebody_has_opted_out_is_read_in_five_languages(cell: str, is_out: bool) -> None:
    rows = import_tables.read(io.BytesIO(f"email,opted_out\nann@example.com,{cell}\n".encode()))

    assert [json.loads(line.content)["opted_out"] for line in rows.good] == [is_out]


@given(some.lists(CONTACTS, min_size=1, max_size=4))
def test_an_export_is_read_with_the_suggested_columns_as_it_was_written(contacts: list[dict[str, Any]]) -> None:
    times = {"created_at": "2026-11-28T12:10:59.174Z", "updated_at": "2026-11-28T12:10:59.174Z"}
    exported = [{"id": ids.new("con"), **contact, **times} for contact in contacts]
    file = io.BytesIO(lists._csv(exported).encode())
    columns = import_columns.read(file)
    file.seek(0)

    rows = import_tables.read(file, Mapping([c.header for c in columns], [c.target for c in columns]))

    assert (rows.bad, rows.left_out) == ([], [])
    given = [{name: value for name, value in each.items() if value not in (None, "", [], {})} for each in exported]
    read = [
        {name: value for name, value in json.loads(line.content).items() if value not in ([], {})} for line in rows.good
    ]
    assert read == [{name: value for name, value in each.items() if name not in times} for each in given]


def test_lines_whose_quotation_marks_swallow_all_that_follow_are_read_again_within_a_budget() -> None:
    """Each line begins a row that goes on to the end of the file, which is then read again from the next line."""
    for line in ('a"b,"c\n', 'a"b,"c' + "x" * 1_600 + "\n"):
        file = io.BytesIO(b"email\n" + line.encode() * 9_999)
        with pytest.raises(Invalid, match="Too many quotation marks are not closed"):
            import_tables.lines_of(file, [])


def test_a_row_ends_where_no_contact_can_be_so_large(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["email", '"open@example.com', *(f"{number}@example.com" for number in range(9_000))]
    taken = []
    take = Lines.read
    monkeypatch.setattr(Lines, "read", lambda self, most=-1: taken.append(1) or take(self, most))
    monkeypatch.setattr(import_texts, "LONGEST_ROW", 1_000)

    found = import_tables.lines_of(io.BytesIO("\n".join(lines).encode()), [2, 9_002])

    assert found.splitlines() == [*lines[:2], lines[-1]]
    assert len(taken) < len(lines) + 100


@pytest.mark.parametrize("long", ["," * 300_000, "x" * 300_000, '"' + "x" * 300_000, '"' + "x" * 300_000 + '"'])
@pytest.mark.usefixtures("empty")
def test_a_line_that_is_too_long_is_refused_unread_and_the_others_are_imported(long: str) -> None:
    text = f"email\nann@example.com\n{long}\nbob@example.com\n"

    rows = import_tables.read(io.BytesIO(text.encode()), None)

    assert [json.loads(line.content)["email"] for line in rows.good] == ["ann@example.com", "bob@example.com"]
    [bad] = rows.bad
    assert (bad.number, json.loads(bad.content)["detail"]) == (
        3,
        "The line cannot be read: it is larger than 256 KiB.",
    )

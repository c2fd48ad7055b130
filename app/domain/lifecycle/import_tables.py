"""Import tables: reads contacts from CSV files, as spreadsheets save them."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from typing import IO, Any

from app.domain.bodies.contacts import ImportedContact
from app.domain.bodies.pointers import refuse_bad_text
from app.domain.lifecycle import import_columns, imports
from app.domain.lifecycle.import_columns import CUSTOM, PLAIN
from app.domain.lifecycle.import_lines import LONGEST_LINE_BYTES, MOST_LINES, sort_out
from app.domain.lifecycle.import_texts import LONGEST_ROW, Lines, opened
from app.errors import Fault, Invalid, Malformed, TooLarge, pointer_to
from app.lib import json
from app.lib.cells import tags, unguarded
from app.lib.countries import international

# Spellings used by other programs in English, German, French, Spanish and Portuguese.
_TRUE = "true yes y 1 wahr ja vrai oui verdadero sí si verdadeiro sim"
_FALSE = "false no n 0 falsch nein faux non falso não nao"
_BOOLEANS = dict.fromkeys(_TRUE.split(), True) | dict.fromkeys(_FALSE.split(), False)


def read(file: IO[bytes], mapping: import_columns.Mapping | None = None, country: str = "") -> imports.Lines:
    """Reads the good and bad rows below the header, by their line numbers in the file.

    A bad cell is left out, unless it identifies the contact or is the opt-out. `country`: the country of phone numbers
    without a country code; "" for none.

    Columns: those in PLAIN, `opted_out`, `tags` (separated by semicolons or commas) and `custom_fields.<name>`; with a
    mapping, any columns that it maps. An empty cell counts as not given. A row of several lines has the number of its
    first line. Raises Invalid if the file is not text, if columns are unknown or differ from the mapping, and if there
    are no rows or too many.
    """
    with opened(file) as text:
        rows = _read(Lines(text), mapping, country)
    if not rows.good and not rows.bad:
        raise Invalid(Fault("", "There are no contacts below the line with the names of the columns."))
    return rows


def _read(lines: Lines, mapping: import_columns.Mapping | None, country: str) -> imports.Lines:
    columns, delimiter = import_columns.header(lines)
    if mapping is not None:
        columns = mapping.names_for(columns)
    else:
        _check(columns)
    contacts = (
        (number, partial(_refuse, reason) if reason else partial(_contact, columns, country, cells))
        for number, cells, reason in _rows(lines, delimiter)
    )
    return sort_out(contacts, ImportedContact(), leave_out=True)


def lines_of(file: IO[bytes], numbers: Collection[int]) -> str:
    """Returns the header and the rows with these line numbers, unchanged. Raises Invalid."""
    with opened(file) as text:
        lines = Lines(text)
        _, delimiter = import_columns.header(lines)
        kept = [*lines.row]
        for number, _, _ in _rows(lines, delimiter):
            if number in numbers:
                kept += lines.row
    return "".join(line if line.endswith(("\r", "\n")) else f"{line}\n" for line in kept)


def _check(columns: Sequence[str]) -> None:
    known = f"Known are {', '.join((*PLAIN, 'tags', 'opted_out'))} and {CUSTOM}<name>."
    if not any(columns):
        raise Invalid(Fault("", f"The first line must name the columns. {known}"))
    if unknown := [name for name in columns if not _is_known(name)]:
        raise Invalid(Fault("", f"There is no column '{unknown[0][:100]}'. {known}"))
    if repeated := [name for name, count in Counter(columns).items() if count > 1]:
        raise Invalid(Fault("", f"The column '{repeated[0][:100]}' is there twice."))


def _is_known(name: str) -> bool:
    return name in (*PLAIN, "tags", "opted_out") or (name.startswith(CUSTOM) and len(name) > len(CUSTOM))


def _rows(lines: Lines, delimiter: str) -> Iterator[tuple[int, Sequence[str], str]]:
    """Yields (number of the first line, cells, reason) for each row that is not empty.

    The reason says why the row cannot be read; otherwise "". Raises Invalid above MOST_LINES.
    """
    reader = csv.reader(lines, delimiter=delimiter)
    for count in range(MOST_LINES + 1):
        lines.begin_row()
        number, reason = lines.number + 1, ""
        cells: list[str] | None = []
        try:
            cells = next(reader, None)
        except csv.Error as error:
            reason = str(error)
        if cells is None:
            return
        if count == MOST_LINES:
            raise Invalid(Fault("", f"An import has at most {MOST_LINES:,} contacts."))
        if lines.is_too_long:
            reason = f"it is larger than {LONGEST_ROW // 1024} KiB"
        elif lines.is_over or (len(lines.row) > 1 and (reason or not _is_strict(lines.row, delimiter))):
            # An unclosed quotation mark has swallowed the lines behind it. They are read again as separate rows.
            lines.go_back()
            reason = "a quotation mark is not closed"
        if reason or any(cells):
            yield number, cells, reason


def _is_strict(row: Sequence[str], delimiter: str) -> bool:
    """Returns whether every closing quotation mark is followed by a separator or the end of the row."""
    try:
        next(csv.reader(row, delimiter=delimiter, strict=True))
    except csv.Error:
        return False
    return True


def _refuse(reason: str) -> dict[str, Any]:
    raise Malformed(f"The line cannot be read: {reason}.")


def _contact(columns: Sequence[str], country: str, cells: Sequence[str]) -> dict[str, Any]:
    if len(cells) > len(columns):
        raise Malformed(f"The line has {len(cells)} cells, the first one only {len(columns)}.")
    if sum(map(len, cells)) > LONGEST_LINE_BYTES:
        raise TooLarge(f"The line is larger than {LONGEST_LINE_BYTES // 1024} KiB.")
    contact: dict[str, Any] = {}
    for name, written in zip(columns, cells, strict=False):
        if not written.strip() or not name:
            continue
        cell = unguarded(written)
        if name == "tags":
            contact.setdefault(name, []).extend(_tags(cell))
        elif name == import_columns.NAME:
            first, _, last = cell.strip().partition(" ")
            contact |= {"first_name": first} | ({"last_name": last.strip()} if last else {})
        elif name == "phone":
            contact[name] = international(cell.strip(), country) if country else cell.strip()
        elif name == "opted_out":
            contact[name] = _boolean(cell)
        elif name == import_columns.FIELDS:
            contact.setdefault(name, {}).update(_fields(cell))
        elif name.startswith(CUSTOM):
            contact.setdefault("custom_fields", {})[name.removeprefix(CUSTOM)] = cell
        else:
            contact[name] = cell.strip()
    refuse_bad_text(contact)
    return contact


def _tags(cell: str) -> list[str]:
    """Splits a cell of tags. Exports write it as a JSON list."""
    listed = _json(cell) if cell.startswith("[") else None
    if isinstance(listed, list) and all(isinstance(tag, str) for tag in listed):
        return listed
    return tags(cell)


def _fields(cell: str) -> dict[str, Any]:
    found = _json(cell)
    if not isinstance(found, dict):
        raise Invalid(Fault(pointer_to("custom_fields"), 'Write an object in JSON, such as {"plan": "gold"}.'))
    return found


def _json(cell: str) -> Any:
    try:
        return json.loads(cell)
    except ValueError:
        return None


def _boolean(cell: str) -> bool:
    try:
        return _BOOLEANS[cell.strip().lower()]
    except KeyError as error:
        raise Invalid(Fault(pointer_to("opted_out"), "Write true or false.")) from error

"""Forms of segments: a filter as rows in one or several groups; any other filter as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, repeat
from typing import Any

from flask import request

from app import bounds
from app.domain.automations import definitions
from app.domain.segments import scans
from app.domain.segments.scans import Counted
from app.domain.triggers import plain_words
from app.errors import Fault, Invalid, Overloaded
from app.lib import json
from app.web.access import workspace_id
from app.web.automations.json_lines import line_of, pretty
from app.web.contacts import segment_rows
from app.web.contacts.segment_rows import Row
from app.web.forms import typed, typed_all

_WORDS = {"all": " and ", "any": " or "}
MOST_ROWS = 20
MOST_GROUPS = 5


@dataclass(frozen=True, slots=True)
class Given:
    """The form's content: rows sorted by group, or the filter as JSON in `text`.

    `matches`: for each group, whether `all` or `any` of its rows must match. `join`: whether all or any groups must.
    """

    name: str = ""
    join: str = "all"
    matches: Sequence[str] = ("all",)
    rows: Sequence[Row] = field(default_factory=lambda: [Row()])
    text: str | None = None

    def of_group(self, group: int) -> list[tuple[int, Row]]:
        """Returns the rows of the group, each with its index among all rows."""
        return [(place, row) for place, row in enumerate(self.rows) if row.group == group]


def given() -> Given:
    """Reads the submitted form, and sorts its rows by group."""
    single = typed("name", "join", "filter")
    matches = [_all_or_any(each) for each in typed_all("match")[:MOST_GROUPS]] or ["all"]
    columns = (typed_all("field"), typed_all("custom"), typed_all("is"), typed_all("value"))
    groups = (_number(each) for each in chain(typed_all("group"), repeat("0")))
    rows = [Row(*each) for each in zip(*columns, groups, strict=False)][:MOST_ROWS]
    kept = _in_order(row for row in rows if row.group < len(matches))
    text = single["filter"] if "filter" in request.form else None
    return Given(single["name"], _all_or_any(single["join"]), matches, kept, text)


def given_of(name: str, condition: Mapping[str, Any]) -> Given:
    """Returns the form of a segment: as rows, or as JSON if rows cannot show its filter.

    Neighbouring comparisons beside groups become a group.
    """
    join = next((each for each in ("all", "any") if each in condition), "all")
    groups: list[tuple[str, list[Any]]] = []
    is_loose = False
    for each in condition.get(join, [condition]):
        match = next((name for name in ("all", "any") if each.keys() == {name}), None)
        if match is None and is_loose:
            groups[-1][1].append(each)
        else:
            groups.append((match or join, each[match] if match else [each]))
        is_loose = match is None
    rows = [segment_rows.row_of(each, number) for number, (_, listed) in enumerate(groups) for each in listed]
    if None in rows or not 0 < len(rows) <= MOST_ROWS or len(groups) > MOST_GROUPS:
        return Given(name, text=pretty(dict(condition)))
    return Given(name, join, [match for match, _ in groups], [each for each in rows if each is not None])


def pressed(typed_: Given, button: str) -> Given | None:
    """Returns the form with rows or groups changed by the button; None for other buttons."""
    matches, rows = list(typed_.matches), list(typed_.rows)
    verb, _, number = button.rpartition("-")
    if button == "add-group":
        if len(matches) < MOST_GROUPS and len(rows) < MOST_ROWS:
            matches, rows = [*matches, "any"], [*rows, Row(group=len(matches))]
    elif verb == "add":
        rows = _in_order([*rows, Row(group=min(_number(number), len(matches) - 1))][:MOST_ROWS])
    elif verb == "remove":
        del rows[_number(number) : _number(number) + 1]
    elif verb == "remove-group":
        gone = _number(number) if len(matches) > 1 else len(matches)
        del matches[gone : gone + 1]
        rows = [replace(row, group=row.group - (row.group > gone)) for row in rows if row.group != gone]
    else:
        return None
    return replace(typed_, matches=matches, rows=rows)


def filter_of(typed_: Given) -> dict[str, Any]:
    """Returns the filter of the form. Raises Invalid, with pointers below `/filter`."""
    if typed_.text is not None:
        try:
            condition = json.loads(typed_.text)
        except ValueError as error:
            raise Invalid(Fault("/filter", f"This is not JSON: {error}.")) from error
        missing = []
    else:
        condition = _condition(typed_)
        missing = [fault for row, pointer in _placed_rows(typed_) for fault in segment_rows.missing(row, pointer)]
        missing += _empty(typed_)
    if not isinstance(condition, dict) or not (typed_.rows or typed_.text is not None):
        raise Invalid(Fault("/filter", "Say which contacts are meant."))
    if faults := [*missing, *definitions.filter_faults(condition, "/filter")]:
        raise Invalid(*faults)
    return condition


def with_faults(typed_: Given, error: Invalid) -> tuple[Given, dict[str, str]]:
    """Returns the form with errors at its rows, and the errors of other fields."""
    rows, errors = list(typed_.rows), dict[str, str]()
    pointers = [] if typed_.text is not None else [f"{pointer}/" for _, pointer in _placed_rows(typed_)]
    for fault in error.faults:
        place = next((place for place, each in enumerate(pointers) if f"{fault.pointer}/".startswith(each)), None)
        name = fault.pointer.removeprefix("/").partition("/")[0]
        if place is not None:
            member = fault.pointer.removeprefix(pointers[place]).partition("/")[0]
            rows[place] = segment_rows.with_fault(rows[place], member, fault.detail)
        elif typed_.text is not None and name == "filter":
            errors["filter"] = f"{errors.get('filter', '')} {_placed(typed_.text, fault)}".strip()
        else:
            errors.setdefault(name, fault.detail)
    return replace(typed_, rows=rows), errors


def count(condition: Mapping[str, Any]) -> Counted | str:
    """Counts the contacts that match now. Returns a sentence if too many counts are running."""
    try:
        with bounds.reading_segment(workspace_id()):
            return scans.count(workspace_id(), condition)
    except Overloaded as error:
        return str(error.detail)


def summary_of(condition: Mapping[str, Any]) -> str:
    """Describes the filter in words, in one line."""
    found = given_of("", condition)
    if found.text is not None:
        return plain_words.condition(condition)
    groups = [
        _WORDS[match].join(segment_rows.said(row) for _, row in found.of_group(number))
        for number, match in enumerate(found.matches)
    ]
    return groups[0] if len(groups) == 1 else _WORDS[found.join].join(f"({each})" for each in groups)


def _condition(typed_: Given) -> dict[str, Any]:
    groups = [
        {match: [segment_rows.comparison_of(row) for _, row in typed_.of_group(number)]}
        for number, match in enumerate(typed_.matches)
    ]
    return groups[0] if len(groups) == 1 else {typed_.join: groups}


def _placed_rows(typed_: Given) -> Iterator[tuple[Row, str]]:
    for number, match in enumerate(typed_.matches):
        group = "" if len(typed_.matches) == 1 else f"/{typed_.join}/{number}"
        for place, (_, row) in enumerate(typed_.of_group(number)):
            yield row, f"/filter{group}/{match}/{place}"


def _empty(typed_: Given) -> Iterator[Fault]:
    """Yields a fault for each empty group, if there are several groups."""
    for number in range(len(typed_.matches) if len(typed_.matches) > 1 else 0):
        if not typed_.of_group(number):
            yield Fault("/filter", f"Group {number + 1} is empty. Add a comparison, or remove the group.")


def _in_order(rows: Iterable[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: row.group)


def _all_or_any(text: str) -> str:
    return "any" if text == "any" else "all"


def _number(text: str) -> int:
    """Parses the number that a button or row names. Returns an unused number for invalid text."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 4 else MOST_ROWS


def _placed(text: str, fault: Fault) -> str:
    """Prefixes the fault's sentence with its line in the user's JSON, or else with its pointer."""
    pointer = fault.pointer.removeprefix("/filter")
    if not pointer:
        return fault.detail
    line = line_of(text, json.loads(text), pointer)
    return f"Line {line}: {fault.detail}" if line else f"{pointer}: {fault.detail}"

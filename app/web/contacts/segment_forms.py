"""Forms of segments: a filter as rows of comparisons, all or any of which hold; any other filter as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from flask import request

from app import bounds
from app.domain.automations import definitions
from app.domain.segments import scans
from app.domain.segments.scans import Counted
from app.domain.triggers import comparisons
from app.errors import Fault, Invalid, Overloaded
from app.lib import json
from app.web.access import workspace_id
from app.web.automations import condition_words
from app.web.automations.json_lines import line_of, pretty
from app.web.forms import typed, typed_all

CUSTOM = "contact.custom_fields"
FIELDS: Mapping[str, str] = {
    "contact.tags": "Tags",
    "contact.first_name": "First name",
    "contact.last_name": "Last name",
    "contact.email": "E-mail",
    "contact.phone": "Phone",
    "contact.external_id": "External id",
    "contact.locale": "Language",
    "contact.timezone": "Time zone",
    "contact.opted_out": "Opted out (true or false)",
    "contact.channel_kinds": "Kinds of channels",
    "contact.created_at": "Created",
    "contact.last_received_at": "Last wrote",
    "contact.last_sent_at": "Was last written to",
    CUSTOM: "The custom field …",
}
_DAYS = {"days_less": "less_than", "days_more": "greater_than"}
_AGO = {"days_less": "more than", "days_more": "less than"}
COMPARISONS: Mapping[str, str] = {
    "equals": "is",
    "not_equals": "is not",
    "contains": "contains",
    "not_contains": "does not contain",
    "starts_with": "begins with",
    "greater_than": "is more than",
    "less_than": "is less than",
    "days_less": "was longer ago than, in days",
    "days_more": "was within the last, in days",
    "exists": "is there",
    "not_exists": "is missing",
}
_BARE = ("exists", "not_exists")
MOST_ROWS = 20


@dataclass(frozen=True, slots=True)
class Row:
    """A comparison: `custom` is the name of a custom field; `fault` is what is wrong with the entry `faulty`."""

    field: str = "contact.tags"
    custom: str = ""
    comparison: str = "contains"
    value: str = ""
    fault: str = ""
    faulty: str = ""


@dataclass(frozen=True, slots=True)
class Given:
    """What the form has: rows of which `match` (all or any) hold, or else the filter as JSON."""

    name: str = ""
    match: str = "all"
    rows: Sequence[Row] = field(default_factory=lambda: [Row()])
    text: str | None = None


def given() -> Given:
    """What was typed."""
    single = typed("name", "match", "filter")
    columns = (typed_all("field"), typed_all("custom"), typed_all("is"), typed_all("value"))
    rows = [Row(*each) for each in zip(*columns, strict=False)][:MOST_ROWS]
    return Given(single["name"], single["match"], rows, single["filter"] if "filter" in request.form else None)


def given_of(name: str, condition: Mapping[str, Any]) -> Given:
    """A segment as the form has it."""
    match = next((each for each in ("all", "any") if each in condition), None)
    listed = condition[match] if match else [condition]
    rows = [_row_of(each) for each in listed]
    if None in rows or len(rows) > MOST_ROWS:
        return Given(name, text=pretty(dict(condition)))
    return Given(name, match or "all", [each for each in rows if each is not None])


def pressed(typed_: Given, button: str) -> Given | None:
    """The form after the press of a button that changes its rows; None for another button."""
    rows = list(typed_.rows)
    if button == "add":
        rows = [*rows, Row()][:MOST_ROWS]
    elif button.startswith("remove-") and button.removeprefix("remove-").isdecimal():
        del rows[int(button.removeprefix("remove-")) : int(button.removeprefix("remove-")) + 1]
    else:
        return None
    return Given(typed_.name, typed_.match, rows)


def filter_of(typed_: Given) -> dict[str, Any]:
    """The filter that the form stands for. Raises Invalid, with pointers into it below `/filter`."""
    if typed_.text is not None:
        try:
            condition = json.loads(typed_.text)
        except ValueError as error:
            raise Invalid(Fault("/filter", f"This is not JSON: {error}.")) from error
        missing = []
    else:
        match = "any" if typed_.match == "any" else "all"
        condition = {match: [_comparison(row) for row in typed_.rows]}
        missing = [
            fault for number, row in enumerate(typed_.rows) for fault in _missing(row, f"/filter/{match}/{number}")
        ]
    if not isinstance(condition, dict) or not (typed_.rows or typed_.text is not None):
        raise Invalid(Fault("/filter", "Say which contacts are meant."))
    if faults := [*missing, *definitions.filter_faults(condition, "/filter")]:
        raise Invalid(*faults)
    return condition


def with_faults(typed_: Given, error: Invalid) -> tuple[Given, dict[str, str]]:
    """The form with what is wrong at each row, and the sentences for the other fields."""
    rows, errors = list(typed_.rows), dict[str, str]()
    for fault in error.faults:
        parts = fault.pointer.removeprefix("/").split("/")
        if typed_.text is None and len(parts) > 2 and parts[2].isdecimal() and int(parts[2]) < len(rows):
            number = int(parts[2])
            rows[number] = _with_fault(rows[number], "".join(parts[3:4]), fault.detail)
        elif typed_.text is not None and parts[0] == "filter":
            errors["filter"] = f"{errors.get('filter', '')} {_placed(typed_.text, fault)}".strip()
        else:
            errors.setdefault(parts[0], fault.detail)
    return Given(typed_.name, typed_.match, rows, typed_.text), errors


def count(condition: Mapping[str, Any]) -> Counted | str:
    """How many contacts meet the filter now; a sentence if there is no room for another count."""
    try:
        with bounds.reading_segment(workspace_id()):
            return scans.count(workspace_id(), condition)
    except Overloaded as error:
        return str(error.detail)


def summary_of(condition: Mapping[str, Any]) -> str:
    """The filter in a line of words."""
    found = given_of("", condition)
    if found.text is not None:
        return condition_words.condition(condition)
    joined = " and " if found.match == "all" else " or "
    return joined.join(_said(row) for row in found.rows)


def _said(row: Row) -> str:
    name = row.custom if row.field == CUSTOM else FIELDS[row.field].partition(" (")[0]
    if row.comparison in _AGO:
        return f"{name} {_AGO[row.comparison]} {row.value} {'day' if row.value == '1' else 'days'} ago"
    return f"{name} {COMPARISONS[row.comparison]} {row.value}".strip()


def _missing(row: Row, pointer: str) -> Iterator[Fault]:
    """What is missing in a row: the name of a custom field, or the value to compare with."""
    if row.field == CUSTOM and not row.custom.strip():
        yield Fault(f"{pointer}/field", "Name the custom field.")
    if row.comparison not in (*_BARE, *_DAYS) and not row.value.strip():
        yield Fault(f"{pointer}/value", "Say with what to compare it, or choose “is there” or “is missing”.")


def _with_fault(row: Row, member: str, detail: str) -> Row:
    """The row with the first of its faults. `member`: of the comparison that the row stands for."""
    if row.fault:
        return row
    if member == "field":
        return replace(row, fault=detail, faulty="custom" if row.field == CUSTOM else "field")
    return replace(row, fault=detail, faulty="is" if member == "is" else "value")


def _placed(text: str, fault: Fault) -> str:
    """The sentence for a fault of the filter that was typed as JSON, with its line if that can be told."""
    pointer = fault.pointer.removeprefix("/filter")
    if not pointer:
        return fault.detail
    line = line_of(text, json.loads(text), pointer)
    return f"Line {line}: {fault.detail}" if line else f"{pointer}: {fault.detail}"


def _comparison(row: Row) -> dict[str, Any]:
    found: dict[str, Any] = {"field": f"{CUSTOM}.{row.custom.strip()}" if row.field == CUSTOM else row.field}
    found["is"] = _DAYS.get(row.comparison, row.comparison)
    if row.comparison in _DAYS:
        text = row.value.strip()
        return found | {"days_ago": int(text) if text.isascii() and text.isdigit() and len(text) < 6 else text}
    return found if row.comparison in _BARE else found | {"value": row.value}


def _row_of(condition: Mapping[str, Any]) -> Row | None:
    """The comparison as a row; None if it is more than that."""
    if not {"field", "is"} <= condition.keys() <= {"field", "is", "value", "days_ago"}:
        return None
    name, comparison, value = condition["field"], condition["is"], condition.get("value", "")
    custom = name.removeprefix(f"{CUSTOM}.") if name.startswith(f"{CUSTOM}.") else ""
    if "days_ago" in condition:
        value = int(condition["days_ago"])
        comparison = next((each for each, of in _DAYS.items() if of == comparison), "")
    text = _typed_as(value)
    is_named = custom == _typed_as(custom.strip()) if custom else name in FIELDS and name != CUSTOM
    if comparison not in COMPARISONS or text is None or not is_named or not (text.strip() or comparison in _BARE):
        return None
    return Row(CUSTOM if custom else name, custom, comparison, text)


def _typed_as(value: Any) -> str | None:
    """What somebody types to mean the value; None if no line of text does."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value) if comparisons.number(str(value)) == value else None
    return value if isinstance(value, str) and not set(value) & {"\n", "\r"} else None

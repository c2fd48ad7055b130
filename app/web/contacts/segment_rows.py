"""Rows of a segment's form: converts them to comparisons and back, and finds their faults."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from app.domain.triggers import comparisons
from app.errors import Fault

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


@dataclass(frozen=True, slots=True)
class Row:
    """A comparison in a group, as entered. `custom`: the name of a custom field.

    `faulty`: the input with a fault (`field`, `custom`, `is` or `value`). `fault`: a sentence about it.
    """

    field: str = "contact.tags"
    custom: str = ""
    comparison: str = "contains"
    value: str = ""
    group: int = 0
    fault: str = ""
    faulty: str = ""


def comparison_of(row: Row) -> dict[str, Any]:
    """Returns the comparison that the row stands for, which may be invalid."""
    found: dict[str, Any] = {"field": f"{CUSTOM}.{row.custom.strip()}" if row.field == CUSTOM else row.field}
    found["is"] = _DAYS.get(row.comparison, row.comparison)
    if row.comparison in _DAYS:
        text = row.value.strip()
        return found | {"days_ago": int(text) if text.isascii() and text.isdigit() and len(text) < 6 else text}
    return found if row.comparison in _BARE else found | {"value": row.value}


def row_of(condition: Mapping[str, Any], group: int) -> Row | None:
    """Returns the row of the comparison; None if a row cannot show it."""
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
    return Row(CUSTOM if custom else name, custom, comparison, text, group)


def said(row: Row) -> str:
    """Describes the row in words, such as “Tags contains vip”."""
    name = row.custom if row.field == CUSTOM else FIELDS[row.field].partition(" (")[0]
    if row.comparison in _AGO:
        return f"{name} {_AGO[row.comparison]} {row.value} {'day' if row.value == '1' else 'days'} ago"
    return f"{name} {COMPARISONS[row.comparison]} {row.value}".strip()


def missing(row: Row, pointer: str) -> Iterator[Fault]:
    """Yields a fault if a custom field has no name, and one if a value is missing."""
    if row.field == CUSTOM and not row.custom.strip():
        yield Fault(f"{pointer}/field", "Name the custom field.")
    if row.comparison not in (*_BARE, *_DAYS) and not row.value.strip():
        yield Fault(f"{pointer}/value", "Say with what to compare it, or choose “is there” or “is missing”.")


def with_fault(row: Row, member: str, detail: str) -> Row:
    """Returns the row with a fault, unless it has one. `member`: the faulty part of the comparison."""
    if row.fault:
        return row
    if member == "field":
        return replace(row, fault=detail, faulty="custom" if row.field == CUSTOM else "field")
    return replace(row, fault=detail, faulty="is" if member == "is" else "value")


def _typed_as(value: Any) -> str | None:
    """Returns the text that stands for the value in an input; None if none does."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value) if comparisons.number(str(value)) == value else None
    return value if isinstance(value, str) and not set(value) & {"\n", "\r"} else None

"""Converts conditions to rows of a form and back. A row of JSON shows what no other row can."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from app.domain.triggers.comparisons import COMPARISONS
from app.lib import json

COLUMNS = ("field", "is", "as", "value", "json")
Row = tuple[str, str, str, str, str]  # the COLUMNS; `json` is "" unless the other columns cannot show the condition
BLANK: Row = ("", "equals", "text", "", "")
MODES = (("all", "All of these hold"), ("any", "At least one holds"), ("none", "None of these holds"))
# What a row can compare the field with: the options of its column `as`.
COMPARED = (("text", "the text"), ("number", "the number"), ("other", "the field"), ("days_ago", "days ago"))
_ALONE = ("exists", "not_exists")  # comparisons without a value


def encode(condition: Any) -> tuple[str, list[Row]]:
    """Returns the mode (all, any or none) and the rows that show a condition; no rows if it is None."""
    if condition is None:
        return "all", []
    if isinstance(condition, Mapping) and len(condition) == 1:
        [(name, inner)] = condition.items()
        if name in ("all", "any") and isinstance(inner, list) and inner:
            return name, [_row(each) for each in inner]
        if name == "not" and isinstance(inner, Mapping):
            if inner.keys() == {"any"} and isinstance(inner["any"], list) and inner["any"]:
                return "none", [_row(each) for each in inner["any"]]
            if _row(inner)[4] == "":
                return "none", [_row(inner)]
    return "all", [_row(condition)]


def decode(mode: str, rows: Sequence[Sequence[str]]) -> Any:
    """Returns the condition of the rows, combined by `mode` as in `encode`; None if all are blank.

    Raises ValueError, with a sentence for the user.
    """
    found = [_condition(row) for row in rows if any(text.strip() for text in (row[0], row[3], row[4]))]
    if not found:
        return None
    if mode == "none":
        return {"not": found[0] if len(found) == 1 else {"any": found}}
    return found[0] if len(found) == 1 else {"any" if mode == "any" else "all": found}


def _row(condition: Any) -> Row:
    raw = ("", "", "", "", json.dumps(condition).decode())
    if not isinstance(condition, Mapping) or not condition.keys() <= {"field", "is", "value", "other", "days_ago"}:
        return raw
    field, comparison = condition.get("field", ""), condition.get("is", "equals")
    compared = [name for name in ("value", "other", "days_ago") if name in condition]
    if not isinstance(field, str) or comparison not in COMPARISONS or len(compared) > 1 or "is" not in condition:
        return raw
    if not compared:
        return (field, comparison, "text", "", "") if comparison in _ALONE else raw
    shown = _value(compared[0], condition[compared[0]], comparison)
    return (field, comparison, *shown, "") if shown and comparison not in _ALONE else raw


def _value(name: str, value: Any, comparison: str) -> tuple[str, str] | None:
    """Returns (type, text) for the value that a row compares with; None if a row cannot show it."""
    if name == "other":
        return ("other", value) if isinstance(value, str) else None
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return "days_ago" if name == "days_ago" else "number", json.dumps(value).decode()
    if name == "days_ago":
        return None
    if comparison == "one_of":
        is_plain = isinstance(value, list) and all(isinstance(each, str) and each for each in value)
        text = ", ".join(value) if is_plain else ""
        return ("text", text) if value and is_plain and _listed(text) == value else None
    # An input has no line breaks, and an empty value would make the row incomplete.
    return ("text", value) if isinstance(value, str) and value and not set(value) & {"\n", "\r"} else None


def _condition(row: Sequence[str]) -> Any:
    field, comparison, sort, value, raw = row
    if raw.strip():
        return value_of_json(raw)
    made: dict[str, Any] = {"field": field.strip(), "is": comparison if comparison in COMPARISONS else "equals"}
    if comparison in _ALONE:
        return made
    if sort in ("number", "days_ago"):
        return made | {"value" if sort == "number" else "days_ago": number(value)}
    if sort == "other":
        return made | {"other": value.strip()}
    return made | {"value": _listed(value) if comparison == "one_of" else value}


def number(text: str) -> int | float:
    """Parses a number with a decimal point or comma. Raises ValueError with a sentence for the user."""
    try:
        found = json.loads(text.strip().replace(",", "."))
    except ValueError:
        found = None
    if not isinstance(found, (int, float)) or isinstance(found, bool):
        raise ValueError("Write a number.")
    return found


def value_of_json(text: str) -> Any:
    """Parses JSON. Raises ValueError, with a sentence for the user."""
    try:
        return json.loads(text)
    except ValueError as error:
        raise ValueError(f"This is not JSON: {error}.") from error


def _listed(text: str) -> list[str]:
    return [each.strip() for each in text.split(",") if each.strip()]

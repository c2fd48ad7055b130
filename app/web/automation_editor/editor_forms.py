"""Converts a step or trigger to the fields of a form and back, without loss.

A member whose fields were not changed in the form keeps its value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.domain.automations.editing import references
from app.domain.triggers.plain_words import duration
from app.lib import json
from app.lib.plain_names import plain
from app.web.automation_editor import editor_conditions
from app.web.automation_editor.editor_inputs import Input, Spec

Fields = Mapping[str, Sequence[str]]  # the values of a form's fields, by name
MOST_ROWS = 60  # the most rows of an input
_NOTHING = object()  # stands for a member that is missing
# The units that a duration in words may have: seconds by spelling.
_SIZES = {
    **dict.fromkeys(("week", "w"), 604_800),
    **dict.fromkeys(("day", "d"), 86_400),
    **dict.fromkeys(("hour", "hr", "h"), 3_600),
    **dict.fromkeys(("minute", "min", "m"), 60),
    **dict.fromkeys(("second", "sec", "s"), 1),
}
_PART = re.compile(r"\s*(?:,|and\b)?\s*(\d{1,9})\s*([a-z]+)\.?\s*", re.ASCII)
_UNKNOWN = "Write how long in words, such as “2 days” or “1 hour 30 minutes”."
_PRESSED = re.compile(r"(add|remove|up|down):([a-z_]{1,40})(?::(\d{1,2}))?")


@dataclass(frozen=True, slots=True)
class Read:
    """The result of reading a form: the step or trigger, and a sentence for each invalid field."""

    value: dict[str, Any]
    errors: dict[str, str] = field(default_factory=dict)


def fields_of(spec: Spec, given: Mapping[str, Any]) -> dict[str, list[str]]:
    """Returns the fields in which the form shows a step or trigger."""
    shown: dict[str, list[str]] = {}
    for each in spec.inputs:
        for name, text in _encode(each, given.get(each.name, _NOTHING)):
            shown.setdefault(name, []).append(text)
    return shown


def read(spec: Spec, fields: Fields, before: Mapping[str, Any]) -> Read:
    """Applies the changed fields to `before`, the step or trigger that the form showed.

    Members keep their values if their fields are unchanged or invalid, or if the form has no input for them.
    """
    shown, value, errors = fields_of(spec, before), dict(before), dict[str, str]()
    for each in spec.inputs:
        if _fields(each, fields) == _fields(each, shown):
            continue
        try:
            found = _decode(each, fields)
        except ValueError as error:
            errors[each.name] = str(error)
            continue
        if found is _NOTHING:
            value.pop(each.name, None)
        else:
            value[each.name] = found
    return Read(value, errors)


def unknown(spec: Spec, given: Mapping[str, Any]) -> list[str]:
    """Returns the members that neither the form nor the picture shows: only JSON can change them."""
    return [name for name in given if name not in {each.name for each in spec.inputs} | spec.kept | {"id", "kind"}]


def pressed(spec: Spec, fields: Fields, button: str) -> dict[str, list[str]] | None:
    """Returns the fields after a button that adds, removes or moves a row; None for other buttons.

    `button`: its value, such as `add:buttons` or `up:arms:1`. Adds no row beyond MOST_ROWS.
    """
    found = _PRESSED.fullmatch(button)
    input_ = found and next((each for each in spec.inputs if each.name == found[2] and each.columns), None)
    if not (found and input_):
        return None
    rows = rows_of(input_, fields)
    if found[1] == "add":
        blank = editor_conditions.BLANK if input_.type == "condition" else ("",) * len(input_.columns)
        rows = [*rows, blank][:MOST_ROWS]
    elif found[3] and (place := int(found[3])) < len(rows):
        row = rows.pop(place)
        if found[1] != "remove":
            rows.insert(max(0, place + (-1 if found[1] == "up" else 1)), row)
    columns = {f"{input_.name}.{name}": [row[at] for row in rows] for at, name in enumerate(input_.columns)}
    return {name: list(values) for name, values in fields.items()} | columns


def rows_of(each: Input, fields: Fields) -> list[tuple[str, ...]]:
    """Returns the rows of an input, up to MOST_ROWS, with "" for missing fields."""
    columns = [list(fields.get(f"{each.name}.{column}", ()))[:MOST_ROWS] for column in each.columns]
    count = max(map(len, columns), default=0)
    return list(zip(*(column + [""] * (count - len(column)) for column in columns), strict=True))


def duration_words(seconds: int) -> str:
    """Writes a duration in words, without rounding: `90061` is 1 day 1 hour 1 minute 1 second."""
    return duration(seconds, 4).replace(",", "")


def seconds_of(text: str) -> int:
    """Reads a duration in words as seconds. Raises ValueError, with a sentence for the user."""
    given, at, seconds = text.strip().lower(), 0, 0
    while at < len(given):
        found = _PART.match(given, at)
        size = found and _SIZES.get(found[2], _SIZES.get(found[2].removesuffix("s")))
        if found is None or size is None:
            raise ValueError(_UNKNOWN)
        at, seconds = found.end(), seconds + int(found[1]) * size
    if not given:
        raise ValueError(_UNKNOWN)
    return seconds


def _encode(each: Input, value: Any) -> list[tuple[str, str]]:
    """Returns the fields that show the value. Values that the input cannot show are JSON."""
    if value is _NOTHING and each.type not in ("condition", "rows", "pairs"):
        return [(each.name, "")]
    shown = _plain(each, value)
    return [(each.name, _json(value)), (f"{each.name}.form", "json")] if shown is None else shown


def _plain(each: Input, value: Any) -> list[tuple[str, str]] | None:
    """Like `_encode`, for values that the input can show; None for others."""
    name, is_text = each.name, isinstance(value, str)
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    match each.type:
        case "condition":
            mode, rows = editor_conditions.encode(None if value is _NOTHING else value)
            return [(f"{name}.mode", mode), *_columns(each, rows)] if len(rows) <= MOST_ROWS else None
        case "rows":
            return _of_rows(each, [] if value is _NOTHING else value)
        case "pairs":
            given = {} if value is _NOTHING else value
            is_plain = isinstance(given, dict) and all(isinstance(inner, str) for inner in given.values())
            return _columns(each, list(given.items())) if is_plain and len(given) <= MOST_ROWS else None
        case "value":
            return [(name, _lines(value)), (f"{name}.form", "text")] if is_text else None
        case "duration":
            return [(name, duration_words(value))] if is_whole and value >= 0 else None
        case "number":
            return [(name, _json(value))] if is_whole or isinstance(value, float) else None
        case "flag":
            return [(name, _json(value))] if isinstance(value, bool) else None
        case "choice":
            return [(name, "null" if value is None else value)] if is_text or value is None else None
        case "options":
            # A number, such as a day of the month, is none of the options: it is shown as JSON.
            return [(name, value)] if is_text else None
    return [(name, _lines(value))] if is_text else None


def _of_rows(each: Input, value: Any) -> list[tuple[str, str]] | None:
    if not isinstance(value, list) or len(value) > MOST_ROWS:
        return None
    rows, known = [], {*each.columns}
    if each.name == "arms":
        known = {*each.columns, "steps"} - {"was"}
    for row in value:
        if not isinstance(row, dict) or not row.keys() <= known:
            return None
        texts = [_cell(column, row.get("name" if column == "was" else column, "")) for column in each.columns]
        if None in texts:
            return None
        rows.append([text or "" for text in texts])
    return _columns(each, rows)


def _cell(column: str, value: Any) -> str | None:
    if column == "percent":
        return value if value == "" else _json(value) if isinstance(value, (int, float)) else None
    return value if isinstance(value, str) and not set(value) & {"\n", "\r"} else None


def _columns(each: Input, rows: Sequence[Sequence[str]]) -> list[tuple[str, str]]:
    return [(f"{each.name}.{column}", row[place]) for row in rows for place, column in enumerate(each.columns)]


def _decode(each: Input, fields: Fields) -> Any:
    """Returns the value of the fields; _NOTHING if they are empty.

    Raises ValueError, with a sentence for the user.
    """
    text = _first(fields, each.name)
    if _first(fields, f"{each.name}.form") == "json":
        return editor_conditions.value_of_json(text) if text.strip() else _NOTHING
    if each.type == "condition":
        found = editor_conditions.decode(_first(fields, f"{each.name}.mode"), rows_of(each, fields))
        return _NOTHING if found is None else found
    if each.type == "rows":
        return _read_rows(each, fields) or _NOTHING
    if each.type == "pairs":
        return _read_pairs(rows_of(each, fields)) or _NOTHING
    if each.type == "value":
        return text if text or each.is_required else _NOTHING
    if not text.strip():
        return _NOTHING
    if each.type == "duration":
        return seconds_of(text)
    if each.type == "number":
        return editor_conditions.number(text)
    if each.type == "flag":
        return text == "true"
    if each.type == "choice" and text == "null":
        return None
    return text


def _read_rows(each: Input, fields: Fields) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for texts in rows_of(each, fields):
        row: dict[str, Any] = dict(zip(each.columns, texts, strict=True))
        if not any(text.strip() for name, text in row.items() if name != "was"):
            continue
        if each.name == "buttons":
            row["id"] = row["id"].strip() or _slug(row["label"], [other["id"] for other in found], "button")
        if each.name == "arms":
            row["name"] = row["name"].strip() or _slug("", [other["name"] for other in found], "arm")
            row["percent"] = editor_conditions.number(row["percent"] or "0")
            row["was"] = row["was"] or row["name"]
        found.append(row)
    return found


def _read_pairs(rows: Sequence[Sequence[str]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for key, value in rows:
        if key.strip():
            found[key.strip()] = value
        elif value.strip():
            raise ValueError(f"Write a name for “{value[:40]}”.")
    return found


def _slug(label: str, taken: Sequence[str], otherwise: str) -> str:
    name = "" if "{" in label else plain(label, 40)
    return references.fresh(name or otherwise, taken)


def _fields(each: Input, fields: Fields) -> list[Any]:
    """Returns the fields of an input in a normal form, for comparison."""
    if each.columns and _first(fields, f"{each.name}.form") != "json":
        # The selects of a condition's row are never empty.
        written = (0, 3, 4) if each.type == "condition" else range(len(each.columns))
        rows = [row for row in rows_of(each, fields) if any(row[place].strip() for place in written)]
        return [_first(fields, f"{each.name}.mode") if rows else "", *rows]
    form = _first(fields, f"{each.name}.form")
    return [_lines(_first(fields, each.name)), "" if form == "text" else form]


def _first(fields: Fields, name: str) -> str:
    return next(iter(fields.get(name, ())), "")


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _json(value: Any) -> str:
    return json.dumps(value).decode()

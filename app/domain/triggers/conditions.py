"""Conditions: comparisons of named values, as data.

A condition is `{"field": "contact.tags", "is": "contains", "value": "vip"}`, or `{"all": [...]}`, `{"any": [...]}`,
`{"not": ...}` of conditions. `field` is a dotted path into the variables; a number in it counts the elements of a list
from 0. The last name of a path may contain dots.

How values compare:

- A value that is missing, null, "", [] or {} does not exist. Compared with anything, it makes `equals`, `contains`,
  `greater_than`, `less_than` and `starts_with` false, and so `not_equals` and `not_contains` true.
- A list is compared element by element; one element for which the comparison holds is enough. `not_equals` and
  `not_contains` are the opposites of `equals` and `contains`.
- If both values are numbers, or text that is a number, they are compared as numbers: "10" equals 10, and is greater
  than 9.
- Other text is compared without regard to case and to spaces at its ends. `contains` finds text inside text.
- true and false equal themselves and the text "true" and "false".
- `greater_than` and `less_than` compare numbers with numbers and times (RFC 3339) with times; all else is false.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from app.errors import pointer_to

DEEPEST = 10
MOST_COMPARISONS = 100
LONGEST_TEXT = 4096
ROOTS = ("contact", "conversation", "trigger", "steps")

_NUMBER = re.compile(r"[+-]?[0-9]{1,18}(\.[0-9]{1,18})?", re.ASCII)
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([Tt ][0-9:.]{5,15}([Zz]|[+-][0-9]{2}:?[0-9]{2})?)?", re.ASCII)
_LISTS = ("all", "any")


def holds(condition: Mapping[str, Any], variables: Mapping[str, Any]) -> bool:
    """Whether the condition, which `faults` finds nothing wrong with, holds for the variables."""
    if "all" in condition:
        return all(holds(each, variables) for each in condition["all"])
    if "any" in condition:
        return any(holds(each, variables) for each in condition["any"])
    if "not" in condition:
        return not holds(condition["not"], variables)
    return COMPARISONS[condition["is"]](value_at(condition["field"], variables), condition.get("value"))


def value_at(field: str, variables: Mapping[str, Any]) -> Any:
    """The value that the dotted path names; None if there is none."""
    found: Any = variables
    while field:
        if isinstance(found, Mapping) and field in found:
            return found[field]
        name, _, field = field.partition(".")
        if isinstance(found, Mapping):
            found = found.get(name)
        elif isinstance(found, list) and name.isascii() and name.isdigit() and int(name[:9]) < len(found):
            found = found[int(name[:9])]
        else:
            return None
    return found


def faults(condition: Any) -> Iterator[tuple[str, str]]:
    """The faults of the condition: pointers into it, with sentences."""
    if sum(1 for _ in _comparisons(condition)) > MOST_COMPARISONS:
        yield "", f"A condition has at most {MOST_COMPARISONS} comparisons."
    else:
        yield from _faults(condition, "", 1)


def fields(condition: Any) -> Iterator[tuple[str, str]]:
    """The fields that a condition without faults names, each with the pointer to its comparison."""
    for pointer, comparison in _comparisons(condition):
        yield pointer, comparison["field"]


def _faults(condition: Any, at: str, depth: int) -> Iterator[tuple[str, str]]:
    if not isinstance(condition, dict):
        yield at, 'Give a condition, such as {"field": "contact.tags", "is": "contains", "value": "vip"}.'
        return
    if depth > DEEPEST:
        yield at, f"Conditions are nested at most {DEEPEST} levels deep."
        return
    kinds = [name for name in (*_LISTS, "not") if name in condition]
    if not kinds:
        yield from _faults_of_comparison(condition, at)
        return
    for name in sorted(condition.keys() - kinds[:1]):
        yield at + pointer_to(name), f"Remove this: a condition with '{kinds[0]}' has no other members."
    inner = condition[kinds[0]]
    if kinds[0] == "not":
        yield from _faults(inner, f"{at}/not", depth + 1)
    elif not isinstance(inner, list) or not inner:
        yield f"{at}/{kinds[0]}", "Give a list of at least one condition."
    else:
        for index, each in enumerate(inner):
            yield from _faults(each, f"{at}/{kinds[0]}/{index}", depth + 1)


def _faults_of_comparison(condition: Mapping[str, Any], at: str) -> Iterator[tuple[str, str]]:
    for name in sorted(condition.keys() - {"field", "is", "value"}):
        yield (
            at + pointer_to(name),
            "Unknown field. A condition has 'field', 'is' and 'value', or 'all', 'any', 'not'.",
        )
    field, comparison, value = condition.get("field"), condition.get("is"), condition.get("value")
    if not isinstance(field, str) or not 0 < len(field) <= LONGEST_TEXT:
        yield f"{at}/field", "Name the value to look at, such as contact.email or trigger.variables.plan."
    elif field.partition(".")[0] not in ROOTS:
        yield f"{at}/field", f"There is no '{field[:100]}'. A field begins with {', '.join(ROOTS[:-1])} or {ROOTS[-1]}."
    if not isinstance(comparison, str) or comparison not in COMPARISONS:
        yield f"{at}/is", f"Give one of {', '.join(COMPARISONS)}."
    elif comparison in ("exists", "not_exists"):
        if "value" in condition:
            yield f"{at}/value", f"Remove this: '{comparison}' compares with nothing."
    elif "value" not in condition:
        yield f"{at}/value", "Give the value to compare with."
    elif not isinstance(value, (str, int, float)):
        yield f"{at}/value", "Give text, a number, true or false. For a missing value use 'exists' or 'not_exists'."
    elif isinstance(value, str) and len(value) > LONGEST_TEXT:
        yield f"{at}/value", f"Text to compare with has at most {LONGEST_TEXT:,} characters."


def _comparisons(condition: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """All comparisons inside, with their pointers, however deep."""
    pending = [("", condition)]
    while pending:
        at, each = pending.pop()
        if not isinstance(each, dict):
            continue
        inner = [(f"{at}/{name}/{i}", one) for name in _LISTS for i, one in enumerate(_list(each.get(name)))]
        if "not" in each:
            inner.append((f"{at}/not", each["not"]))
        if not inner:
            yield at, each
        pending += inner


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _exists(found: Any) -> bool:
    return found is not None and found not in ("", [], {})


def _some(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    """The comparison for lists too: it holds if it does for one element."""

    def compare_all(found: Any, value: Any) -> bool:
        return any(_exists(each) and compare(each, value) for each in (found if isinstance(found, list) else [found]))

    return compare_all


def _equals(found: Any, value: Any) -> bool:
    numbers = _number(found), _number(value)
    return numbers[0] == numbers[1] if None not in numbers else _text(found) == _text(value)


def _contains(found: Any, value: Any) -> bool:
    if isinstance(found, list):
        return _some(_equals)(found, value)
    return _exists(found) and not isinstance(found, dict) and _text(value) in _text(found)


def _is_greater(found: Any, value: Any) -> bool:
    return _compared(found, value) > 0


def _is_less(found: Any, value: Any) -> bool:
    return _compared(found, value) < 0


def _compared(found: Any, value: Any) -> int:
    """1 if it is greater, -1 if it is less, 0 if it is neither."""
    readings: tuple[Callable[[Any], Any], ...] = (_number, _time)
    for read in readings:
        one, other = read(found), read(value)
        if one is not None and other is not None:
            return int(one > other) - int(one < other)
    return 0


def _starts(found: Any, value: Any) -> bool:
    return _text(found).startswith(_text(value))


def _number(value: Any) -> float | None:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    return float(value) if isinstance(value, str) and _NUMBER.fullmatch(value.strip()) else None


def _time(value: Any) -> datetime | None:
    if isinstance(value, str) and _TIME.fullmatch(value):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None
    if not isinstance(value, datetime):
        return None
    return value if value.tzinfo else value.replace(tzinfo=UTC)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value).strip().casefold()


COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "equals": _some(_equals),
    "not_equals": lambda found, value: not _some(_equals)(found, value),
    "contains": _contains,
    "not_contains": lambda found, value: not _contains(found, value),
    "exists": lambda found, value: _exists(found),
    "not_exists": lambda found, value: not _exists(found),
    "greater_than": _some(_is_greater),
    "less_than": _some(_is_less),
    "starts_with": _some(_starts),
}

_CONDITION = {"$ref": "#/components/schemas/Condition"}
_CONDITIONS = {"type": "array", "minItems": 1, "items": _CONDITION}


def _of(name: str, inner: Mapping[str, Any], description: str) -> Mapping[str, Any]:
    return {
        "type": "object",
        "description": description,
        "required": [name],
        "additionalProperties": False,
        "properties": {name: inner},
    }


_FORMS: Mapping[str, Mapping[str, Any]] = {
    "Comparison": {
        "type": "object",
        "description": "A comparison of a value of the run's with another.",
        "required": ["field", "is"],
        "additionalProperties": False,
        "properties": {
            "field": {"type": "string", "minLength": 1, "maxLength": LONGEST_TEXT, "example": "contact.tags"},
            "is": {"type": "string", "enum": list(COMPARISONS)},
            "value": {"type": ["string", "number", "boolean"]},
        },
    },
    "AllCondition": _of("all", _CONDITIONS, "Holds if all of these hold."),
    "AnyCondition": _of("any", _CONDITIONS, "Holds if at least one of these holds."),
    "NotCondition": _of("not", _CONDITION, "Holds if this does not."),
}

# Components of the OpenAPI document, where a condition refers to itself. Each form has a name, because generators of
# clients make classes of named schemas, and only a class can contain itself.
SCHEMAS: Mapping[str, Mapping[str, Any]] = {
    "Condition": {
        "description": "A comparison, or 'all', 'any' or 'not' of conditions.",
        "oneOf": [{"$ref": f"#/components/schemas/{name}"} for name in _FORMS],
    },
    **_FORMS,
}

"""Conditions: comparisons of named values, stored as data.

A condition is `{"field": "contact.tags", "is": "contains", "value": "vip"}`, or `{"all": [...]}`, `{"any": [...]}`,
`{"not": ...}` of conditions. `field` is a dotted path into the variables; a number in it is an index into a list, from
0. The last name of a path may contain dots. Instead of `value`, a comparison may have `other`, a second path to compare
with, or `days_ago`, a number of days before now. `comparisons` says how values compare.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from app.domain.triggers.comparisons import COMPARISONS, LONGEST_TEXT, MOST_VALUES, ORDERED, fault_of_value, work_of
from app.errors import pointer_to
from app.lib import clock, json

DEEPEST = 10
MOST_COMPARISONS = 100
MOST_MATCHES = 10
MOST_DAYS = 36_500
ROOTS = ("contact", "conversation", "trigger", "steps", "run")

CUSTOM = "contact.custom_fields."
_LISTS = ("all", "any")
_COMPARED = ("value", "other", "days_ago")


def holds(
    condition: Mapping[str, Any], variables: Mapping[str, Any], spend: Callable[[int], None] | None = None
) -> bool:
    """Returns whether the condition holds for the variables. Call it only if `faults` finds none.

    `spend` is called with the cost of each comparison, in steps, before it is made.
    """
    if "all" in condition:
        return all(holds(each, variables, spend) for each in condition["all"])
    if "any" in condition:
        return any(holds(each, variables, spend) for each in condition["any"])
    if "not" in condition:
        return not holds(condition["not"], variables, spend)
    value = value_at(condition["other"], variables) if "other" in condition else given_value(condition, clock.now())
    found = value_at(condition["field"], variables)
    if spend is not None:
        spend(work_of(condition["is"], found, value))
    return COMPARISONS[condition["is"]](found, value)


def given_value(comparison: Mapping[str, Any], now: datetime) -> Any:
    """Returns the value that a comparison without `other` compares with; None if it has none."""
    if "days_ago" in comparison:
        return json.timestamp(now - timedelta(days=comparison["days_ago"]))
    return comparison.get("value")


def at_time(condition: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """Returns the condition with a fixed `value` for each `days_ago`, counted back from `now`."""
    fixed: dict[str, Any] = {
        name: [at_time(each, now) for each in condition[name]] for name in _LISTS if name in condition
    }
    if "not" in condition:
        fixed["not"] = at_time(condition["not"], now)
    if fixed or "days_ago" not in condition:
        return {**condition, **fixed}
    kept = {name: value for name, value in condition.items() if name != "days_ago"}
    return kept | {"value": given_value(condition, now)}


def value_at(field: str, variables: Mapping[str, Any]) -> Any:
    """Returns the value at the dotted path, or None. Ignores case in the names of custom fields."""
    found = _value_at(field, variables)
    if found is not None or not field.startswith(CUSTOM):
        return found
    custom, name = _value_at(CUSTOM[:-1], variables), field.removeprefix(CUSTOM)
    others = custom if isinstance(custom, Mapping) and name not in custom else {}
    return next((others[each] for each in sorted(others) if is_same_name(each, name)), None)


def is_same_name(one: str, other: str) -> bool:
    """Returns whether two names of custom fields are equal when case is ignored."""
    return one.isascii() == other.isascii() and one.casefold() == other.casefold()


def _value_at(field: str, variables: Mapping[str, Any]) -> Any:
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
    """Yields the faults of the condition, each as (pointer into the condition, sentence)."""
    if sum(1 for _ in comparisons(condition)) > MOST_COMPARISONS:
        yield "", f"A condition has at most {MOST_COMPARISONS} comparisons."
    elif matches(condition) > MOST_MATCHES:
        yield "", f"A condition has at most {MOST_MATCHES} comparisons with 'matches'."
    else:
        yield from _faults(condition, "", 1)


def matches(condition: Any) -> int:
    """Returns how many `matches` comparisons the condition has."""
    return sum(1 for _, comparison in comparisons(condition) if comparison.get("is") == "matches")


def fields(condition: Any) -> Iterator[tuple[str, str]]:
    """Yields the fields that a valid condition names, each as (pointer, field)."""
    for pointer, comparison in comparisons(condition):
        for name in ("field", "other"):
            if name in comparison:
                yield f"{pointer}/{name}", comparison[name]


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
    for name in sorted(condition.keys() - {"field", "is", *_COMPARED}):
        yield (
            at + pointer_to(name),
            "Unknown field. A condition has 'field', 'is' and 'value', 'other' or 'days_ago'; or it has 'all', 'any' or"
            " 'not'.",
        )
    for name in ("field", *(["other"] if "other" in condition else [])):
        if (wrong := _fault_of_field(condition.get(name))) is not None:
            yield f"{at}/{name}", wrong
    comparison = condition.get("is")
    if not isinstance(comparison, str) or comparison not in COMPARISONS:
        yield f"{at}/is", f"Give one of {', '.join(COMPARISONS)}."
    elif comparison in ("exists", "not_exists"):
        for name in _COMPARED:
            if name in condition:
                yield f"{at}/{name}", f"Remove this: '{comparison}' compares with nothing."
    elif "days_ago" in condition:
        yield from _faults_of_days(condition, at)
    elif "other" not in condition:
        if (wrong := fault_of_value(comparison, condition)) is not None:
            yield f"{at}/value", wrong
    elif "value" in condition:
        yield f"{at}/other", "Give either 'value' or 'other'."
    elif comparison == "matches":
        yield f"{at}/other", "Give the regular expression as 'value': it has to be known beforehand."


def _faults_of_days(condition: Mapping[str, Any], at: str) -> Iterator[tuple[str, str]]:
    days = condition["days_ago"]
    for name in ("value", "other"):
        if name in condition:
            yield f"{at}/{name}", "Give either this or 'days_ago'."
    if condition["is"] not in ORDERED:
        yield f"{at}/days_ago", f"Remove this: only {', '.join(ORDERED)} compare times."
    elif not isinstance(days, (int, float)) or isinstance(days, bool) or not 0 <= days <= MOST_DAYS or days % 1:
        yield f"{at}/days_ago", f"Give a whole number of days, 0 to {MOST_DAYS:,}."


def _fault_of_field(field: Any) -> str | None:
    if not isinstance(field, str) or not 0 < len(field) <= LONGEST_TEXT:
        return "Name the value to look at, such as contact.email or trigger.variables.plan."
    if field.partition(".")[0] not in ROOTS:
        return f"There is no '{field[:100]}'. A field begins with {', '.join(ROOTS[:-1])} or {ROOTS[-1]}."
    return None


def comparisons(condition: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yields all comparisons in the condition, at any depth, each with its pointer."""
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
            "value": {
                "anyOf": [
                    {"type": ["string", "number", "boolean"]},
                    {
                        "type": "array",
                        "minItems": 1,
                        "maxItems": MOST_VALUES,
                        "items": {"type": ["string", "number", "boolean"]},
                    },
                ],
                "description": "What to compare with: for `one_of` a list, for `matches` a regular expression of RE2.",
            },
            "other": {
                "type": "string",
                "minLength": 1,
                "maxLength": LONGEST_TEXT,
                "description": "The field to compare with, instead of `value`.",
            },
            "days_ago": {
                "type": "integer",
                "minimum": 0,
                "maximum": MOST_DAYS,
                "description": "Compare with the time so many days before now, instead of `value`.",
            },
        },
    },
    "AllCondition": _of("all", _CONDITIONS, "Holds if all of these hold."),
    "AnyCondition": _of("any", _CONDITIONS, "Holds if at least one of these holds."),
    "NotCondition": _of("not", _CONDITION, "Holds if this does not."),
}

# OpenAPI components. A condition can contain conditions, and each form has a name: generators of clients make a class
# of each named schema, and only a class can contain itself.
SCHEMAS: Mapping[str, Mapping[str, Any]] = {
    "Condition": {
        "description": "A comparison, or 'all', 'any' or 'not' of conditions.",
        "oneOf": [{"$ref": f"#/components/schemas/{name}"} for name in _FORMS],
        "example": {"field": "contact.tags", "is": "contains", "value": "vip"},
    },
    **_FORMS,
}

"""Converts the cases of RapidPro's routers to conditions."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from app.domain.automations.imports.rapidpro_expressions import template_of
from app.domain.automations.imports.sources import text, texts
from app.domain.channels.buttons import MOST_LABEL
from app.domain.triggers import conditions

Condition = dict[str, Any]
_NUMBER = r"^\s*-?[0-9]+([.,][0-9]+)?\s*$"
_SHAPES = {
    "has_number": r"-?[0-9]+",
    "has_email": r"[^\s@]+@[^\s@]+\.[^\s@]+",
    "has_phone": r"\+?[0-9][0-9 ()./-]{5,}",
    "has_date": r"[0-9]{1,4}[-./ ][0-9]{1,2}[-./ ][0-9]{1,4}",
    "has_time": r"(?i)\b[0-9]{1,2}(:[0-9]{2}|\s*[ap]m\b)",
}
_ORDERS = {
    "has_number_eq": "equals",
    "has_number_lt": "less_than",
    "has_number_lte": "at_most",
    "has_number_gt": "greater_than",
    "has_number_gte": "at_least",
}


def condition_of(case: Mapping[str, Any], path: str) -> Condition | str:
    """Returns a case's condition on the value at the path, or a sentence why there is none."""
    kind, arguments = text(case.get("type")), texts(case.get("arguments"))
    wrong: list[str] = []
    arguments = [template_of(each, wrong.append) for each in arguments]
    if wrong or any("{" in each for each in arguments):
        return "Its argument is an expression; conditions compare with values."
    make = _CONDITIONS.get(kind)
    if make is None:
        return f"There is no test like '{kind[:60]}'."
    made = make(path, [" ".join(each.split()) for each in arguments], kind)
    if made is None:
        return f"Its test '{kind}' has no argument that can be used."
    for _, detail in conditions.faults(made):
        return detail
    return made


def _is(path: str, how: str, *value: Any) -> Condition:
    return {"field": path, "is": how, **({"value": value[0]} if value else {})}


def _any(found: Sequence[Condition]) -> Condition | None:
    return None if not found else found[0] if len(found) == 1 else {"any": list(found)}


def _words(path: str, arguments: Sequence[str], kind: str) -> Condition | None:
    said = [_is(path, "has_word", word) for word in (arguments[0].split() if arguments else ())]
    return _any(said) if kind == "has_any_word" or len(said) < 2 else {"all": said}


def _only(path: str, arguments: Sequence[str], kind: str) -> Condition | None:
    if not arguments:
        return None
    said = [_is(path, "equals", arguments[0])]
    # A button's label may be truncated, but its identifier is not.
    if len(arguments[0]) > MOST_LABEL and path.endswith(".text"):
        said.append(_is(f"{path.removesuffix('.text')}.button_id", "equals", arguments[0]))
    return _any(said)


def _with_argument(how: str, before: str = "") -> Callable[[str, Sequence[str], str], Condition | None]:
    return lambda path, arguments, kind: _is(path, how, before + arguments[0]) if any(arguments[:1]) else None


def _ordered(path: str, arguments: Sequence[str], kind: str) -> Condition | None:
    if not arguments or not re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", arguments[0]):
        return None
    return {"all": [_is(path, "matches", _NUMBER), _is(path, _ORDERS[kind], float(arguments[0]))]}


def _between(path: str, arguments: Sequence[str], kind: str) -> Condition | None:
    if len(arguments) < 2:
        return None
    ends = [
        _ordered(path, [each], how) for each, how in zip(arguments, ("has_number_gte", "has_number_lte"), strict=False)
    ]
    return None if None in ends else {"all": [*ends[0]["all"], ends[1]["all"][1]]}  # type: ignore[index]


def _category(path: str, arguments: Sequence[str], kind: str) -> Condition | None:
    of_category = path if path.endswith("_category") else f"{path}_category"
    return _is(of_category, "one_of", list(arguments)) if arguments else None


def _group(path: str, arguments: Sequence[str], kind: str) -> Condition | None:
    return _is("contact.tags", "contains", arguments[-1][:100]) if arguments and arguments[-1] else None


_CONDITIONS: Mapping[str, Callable[[str, Sequence[str], str], Condition | None]] = {
    "has_any_word": _words,
    "has_all_words": _words,
    "has_phrase": _with_argument("has_word"),
    "has_only_phrase": _only,
    "has_only_text": _only,
    "has_beginning": _with_argument("starts_with"),
    **dict.fromkeys(("has_text", "has_value"), lambda path, arguments, kind: _is(path, "exists")),
    "has_pattern": _with_argument("matches", "(?i)"),
    "has_category": _category,
    "has_group": _group,
    "has_number_between": _between,
    **dict.fromkeys(_ORDERS, _ordered),
    **{name: (lambda path, arguments, kind: _is(path, "matches", _SHAPES[kind])) for name in _SHAPES},
}

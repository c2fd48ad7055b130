"""Comparisons: how two values compare, by the names of the comparisons in conditions.

- A value that is missing, null, "", [] or {} does not exist. Compared with anything, it makes `not_equals` and
  `not_contains` true, and all others false.
- A list is compared element by element, and holds if one element does. `not_equals` and `not_contains` are the
  opposites of `equals` and `contains`.
- Two numbers, or texts that are numbers, are compared as numbers: "10" equals 10, and is greater than 9.
- Other text is compared as people read it: case, surrounding spaces, invisible characters and the encoding of a letter
  (composed or not, full width) make no difference. `contains` finds text inside text; `has_word` finds it only if no
  letter, digit or '_' stands before or after it.
- `matches` searches for an RE2 regular expression, ignoring case, in the first 1,000 characters; in a list, in the
  first 1,000 of all elements together.
- true and false equal themselves and the text "true" and "false".
- `greater_than`, `less_than`, `at_least` and `at_most` compare numbers with numbers and times with times, also as
  people type them ("1.234,50", "25 €", "21.11.1990") if the text can be read in one way only. Anything else is false.
- `one_of` holds if the field equals one value of a list.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from unicodedata import normalize

import re2

from app.lib import typed_answers
from app.lib.normalization import folded

# The comparisons that need an order: of numbers, or of times.
ORDERED = ("greater_than", "less_than", "at_least", "at_most")
LONGEST_TEXT = 4096
MOST_VALUES = 100
# RE2's time grows with the text and the compiled expression (docs/decisions/0033). These limits keep it to about 3 ms.
LONGEST_PATTERN = 500
MOST_PATTERN_BYTES = 128 * 1024
LONGEST_MATCHED = 1_000
_STEPS_OF_MATCHES = 500
_CHARACTERS_OF_STEP = 10
_LONGEST_REMEMBERED = 200

_NUMBER = re.compile(r"[+-]?[0-9]{1,18}(\.[0-9]{1,18})?", re.ASCII)
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([Tt ][0-9:.]{5,15}([Zz]|[+-][0-9]{2}:?[0-9]{2})?)?", re.ASCII)


def fault_of_value(comparison: str, condition: Mapping[str, Any]) -> str | None:
    """Returns the fault of the `value` of a condition without `other`, in a sentence; None if valid."""
    if "value" not in condition:
        return "Give the value to compare with, or name another field as 'other'."
    value = condition["value"]
    if comparison != "one_of":
        return _fault_of_one(comparison, value)
    if not isinstance(value, list) or not 0 < len(value) <= MOST_VALUES:
        return f"Give a list of 1 to {MOST_VALUES} values."
    return next(filter(None, (_fault_of_one(comparison, each) for each in value)), None)


def _fault_of_one(comparison: str, value: Any) -> str | None:
    if not isinstance(value, (str, int, float)):
        return "Give text, a number, true or false. For a missing value use 'exists' or 'not_exists'."
    if not isinstance(value, str):
        return "Give a regular expression as text." if comparison == "matches" else None
    longest = LONGEST_PATTERN if comparison == "matches" else LONGEST_TEXT
    if len(value) > longest:
        return f"Text to compare with has at most {longest:,} characters."
    if comparison == "matches":
        return _fault_of_pattern(value)
    if "{{" in value or "{%" in value:
        return "Text to compare with is no template. To compare with a field, name it as 'other'."
    if comparison in ORDERED and typed_number(value) is None and typed_moment(value) is None:
        return "Give a number or a time to compare with, such as 18, 2026-11-21 or 2026-11-21T10:00:00Z."
    return None


def _fault_of_pattern(pattern: str) -> str | None:
    try:
        _compiled(pattern)
    except re2.error as error:
        return f"This is no regular expression of RE2: {error.args[0].decode(errors='replace')}."
    return None


def work_of(comparison: str, found: Any, value: Any) -> int:
    """Returns the cost of a comparison in steps of a template's Budget. Lists: every pair counts."""
    if comparison == "matches":
        return _STEPS_OF_MATCHES
    ones, others = (each if isinstance(each, list) else [each] for each in (found, value))
    lengths = len(others) * sum(map(_length, ones)) + len(ones) * sum(map(_length, others))
    return 2 + len(ones) * len(others) + lengths // _CHARACTERS_OF_STEP


def _length(value: Any) -> int:
    """Returns the cost of folding the value, in characters.

    Short text costs 0, because its result is cached. ASCII text costs 1/50 of its length.
    """
    if not isinstance(value, str) or len(value) <= _LONGEST_REMEMBERED:
        return 0
    return len(value) // 50 if value.isascii() else len(value)


def exists(found: Any) -> bool:
    """Returns whether the value exists, so that it can be compared."""
    return found is not None and found not in ("", [], {})


def _some(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    """Extends `compare` to lists: a list matches if at least one existing element does."""

    def compare_all(found: Any, value: Any) -> bool:
        return any(exists(each) and compare(each, value) for each in (found if isinstance(found, list) else [found]))

    return compare_all


def _equals(found: Any, value: Any) -> bool:
    numbers = number(found), number(value)
    return numbers[0] == numbers[1] if None not in numbers else text(found) == text(value)


def _contains(found: Any, value: Any) -> bool:
    if isinstance(found, list):
        return _some(_equals)(found, value)
    return exists(found) and not isinstance(found, dict) and text(value) in text(found)


def _one_of(found: Any, value: Any) -> bool:
    return any(_equals(found, each) for each in (value if isinstance(value, list) else [value]) if exists(each))


def _has_word(found: Any, value: Any) -> bool:
    word = text(value)
    return bool(word) and re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text(found)) is not None


def _matches(found: Any, value: Any) -> bool:
    pattern, left = _compiled(value), LONGEST_MATCHED
    for each in found if isinstance(found, list) else [found]:
        looked_at = normalize("NFC", _said(each).casefold())[:left] if exists(each) else ""
        left -= len(looked_at)
        if looked_at and pattern.search(looked_at) is not None:
            return True
    return False


@lru_cache(256)
def _compiled(pattern: str) -> Any:
    """Returns the compiled pattern, which ignores case. Raises re2.error if invalid or too large."""
    options = re2.Options()
    options.case_sensitive, options.log_errors, options.max_mem = False, False, MOST_PATTERN_BYTES
    return re2.compile(pattern, options)


def _ordered(holds: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    """Returns a function that applies `holds` to two numbers or two times; False for other values."""
    readings: tuple[Callable[[Any], Any], ...] = (number, moment, typed_number, typed_moment)

    def compare(found: Any, value: Any) -> bool:
        for read in readings:
            one, other = read(found), read(value)
            if one is not None and other is not None:
                return holds(one, other)
        return False

    return compare


def number(value: Any) -> float | None:
    """Returns a number, or text that is a number, as a number; None for any other value."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    return float(text(value)) if isinstance(value, str) and _NUMBER.fullmatch(text(value)) else None


def moment(value: Any) -> datetime | None:
    """Returns the value as a time, in UTC if it has no zone; None if it is not a time."""
    if isinstance(value, str) and _TIME.fullmatch(value):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None
    if not isinstance(value, datetime):
        return None
    return value if value.tzinfo else value.replace(tzinfo=UTC)


def typed_number(value: Any) -> float | None:
    """Returns the number, also as people type it ("25 €"); None for other or ambiguous values."""
    if (plain := number(value)) is not None or not isinstance(value, str):
        return plain
    with suppress(ValueError):
        return typed_answers.number(value)
    return None


def typed_moment(value: Any) -> datetime | None:
    """Returns the time, also as a day that people type; None for other or ambiguous values."""
    if (plain := moment(value)) is not None or not isinstance(value, str):
        return plain
    with suppress(ValueError):
        return datetime.fromisoformat(typed_answers.date(value)).replace(tzinfo=UTC)
    return None


def text(value: Any) -> str:
    """Returns the value as folded text, the form in which text is compared."""
    said = _said(value)
    return _folded(said) if len(said) <= _LONGEST_REMEMBERED else folded(said).strip()


@lru_cache(4_096)
def _folded(said: str) -> str:
    return folded(said).strip()


def _said(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value).strip()


COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "equals": _some(_equals),
    "not_equals": lambda found, value: not _some(_equals)(found, value),
    "contains": _contains,
    "not_contains": lambda found, value: not _contains(found, value),
    "exists": lambda found, value: exists(found),
    "not_exists": lambda found, value: not exists(found),
    "greater_than": _some(_ordered(operator.gt)),
    "less_than": _some(_ordered(operator.lt)),
    "at_least": _some(_ordered(operator.ge)),
    "at_most": _some(_ordered(operator.le)),
    "starts_with": _some(lambda found, value: text(found).startswith(text(value))),
    "has_word": _some(_has_word),
    "matches": _matches,
    "one_of": _some(_one_of),
}

"""Translations: turns conditions on contacts into SQL, which yields true, false or NULL.

NULL means that SQL cannot decide exactly, for example because of letters beyond ASCII. Then `conditions.holds` decides:
it defines what a condition means. SQL's AND, OR and NOT combine the three values correctly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any

from app import sql
from app.channels.kinds import CHANNEL_KINDS
from app.domain.triggers.comparisons import (
    COMPARISONS,
    ORDERED,
    exists,
    moment,
    number,
    text,
    typed_moment,
    typed_number,
)
from app.lib import json

# Columns of the row `contact`, by type.
TEXTS = ("id", "external_id", "email", "phone", "first_name", "last_name", "locale", "timezone")
TIMES = ("created_at", "updated_at", "last_received_at", "last_sent_at")
_CUSTOM = "contact.custom_fields."
_UNKNOWN = "NULL::boolean"

# Floats represent all integers below this exactly.
_LARGEST = 2**53
_OPERATORS = dict(zip(ORDERED, (">", "<", ">=", "<="), strict=True))
_OPPOSITES = {"not_equals": "equals", "not_contains": "contains", "not_exists": "exists"}
# The ASCII characters that `str.strip` removes.
_SPACES = r"E' \t\n\x0b\f\r\x1c\x1d\x1e\x1f'"
_NUMBER = "'^[+-]?[0-9]{1,18}([.][0-9]{1,18})?$'"
# Ranges of non-ASCII characters that `comparisons.text` strips, drops, turns into ASCII or joins with an ASCII letter.
# All other characters stay non-ASCII and separate, so they match nothing in an ASCII value.
TURNING_ASCII = (
    "\x85\xa0\xa8\xaa\xad\xaf\xb2-\xb4\xb8-\xba\xbc-\xbe\xdf\u0130\u0132\u0133\u013f\u0140\u0149\u017f"
    "\u01c4-\u01cc\u01f1-\u01f3\u02b0\u02b2\u02b3\u02b7\u02b8\u02d8-\u02dd\u02e1-\u02e3\u0300-\u0304\u0306-\u030c"
    "\u030f\u0311\u031b\u0323-\u0328\u032d\u032e\u0330\u0331\u0338\u0340\u0341\u0344\u037a\u037e\u0384\u0385"
    "\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u1680\u180e\u1d2c-\u1d65\u1d9c-\u1dbb\u1e9a\u1e9e\u1fbd"
    "\u1fbf-\u1fc1\u1fcd-\u1fcf\u1fdd-\u1fdf\u1fed-\u1fef\u1ffd\u1ffe\u2000-\u200f\u2017\u2024-\u2026"
    "\u2028-\u20a8\u2100-\u2189\u2460-\u24ea\u2a74-\u2a76\u2c7c\u2c7d\u3000\u309b\u309c\u3200-\u325f\u32b1-\u32cf"
    "\u3358-\u33ff\ua7f2-\ua7f4\ufb00-\ufb29\ufc5e-\ufc63\ufdfa-\ufe7e\ufeff-\uff5e\uffe3-\ufffb\U000107a5"
    "\U000110bd-\U000110cd\U00013430-\U00013438\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U0001d400-\U0001d6a3"
    "\U0001d7ce-\U0001d7ff\U0001f100-\U0001f190\U0001fbf0-\U0001fbf9\U000e0001-\U000e007f"
)
# Only days that the month has in every year, so that the text can be cast to a time.
_TIME = (
    "'^[1-9][0-9]{3}-((0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])|(0[13-9]|1[0-2])-(29|30)|(0[13578]|1[02])-31)"
    "(T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{3})?Z)?$'"
)


class Translation:
    """The SQL of a valid condition without `days_ago`, and the `values` of its parameters."""

    def __init__(self, condition: Mapping[str, Any]) -> None:
        self.values: dict[str, Any] = {}
        self.sql = self._of(condition)

    def _of(self, condition: Mapping[str, Any]) -> str:
        for name, operator in (("all", " AND "), ("any", " OR ")):
            if name in condition:
                return f"({operator.join(map(self._of, condition[name]))})"
        if "not" in condition:
            return f"(NOT {self._of(condition['not'])})"
        if "other" in condition:
            return _UNKNOWN
        comparison = condition["is"]
        is_opposite = comparison in _OPPOSITES
        positive = self._compare(condition["field"], _OPPOSITES.get(comparison, comparison), condition.get("value"))
        return f"(NOT {positive})" if is_opposite else positive

    def _compare(self, field: str, comparison: str, value: Any) -> str:
        column = field.removeprefix("contact.")
        if field.startswith(_CUSTOM) and not field.endswith("."):
            return self._custom(field.removeprefix(_CUSTOM), comparison, value)
        if column in TEXTS:
            return self._text(f"contact.{column}", comparison, value)
        if column in TIMES:
            return self._time(f"contact.{column}", comparison, value)
        by_column: Mapping[str, Callable[[str, Any], str]] = {
            "opted_out": self._opted_out,
            "tags": self._tags,
            "channel_kinds": self._channel_kinds,
        }
        return by_column[column](comparison, value) if column in by_column else _UNKNOWN

    def _text(self, column: str, comparison: str, value: Any) -> str:
        return f"""(CASE WHEN {column} IS NULL OR {column} = '' THEN {_known(comparison, None, value)}
            WHEN {self._is_unknown(column, _values(comparison, value))} THEN NULL
            ELSE {self._ascii(column, comparison, value)} END)"""

    def _is_unknown(self, column: str, values: Sequence[Any]) -> str:
        """Returns SQL for whether non-ASCII characters may change how the text compares with the values."""
        has_others = f"octet_length({column}) <> length({column})"
        if not all(text(each).isascii() for each in values):
            return has_others
        return f"{has_others} AND {column} ~ {self._value(f'[{TURNING_ASCII}]')}"

    def _ascii(self, column: str, comparison: str, value: Any) -> str:
        """Returns SQL for the comparison with text that is not empty, and not unknown (`_is_unknown`)."""
        compared = f"""lower(btrim({column}, {_SPACES}) COLLATE "C")"""
        match comparison:
            case "exists":
                return "true"
            case "equals" | "one_of":
                return self._ascii_one_of(column, compared, _values(comparison, value))
            case "contains":
                return f"strpos({compared}, {self._value(text(value))}) > 0"
            case "starts_with":
                return f"starts_with({compared}, {self._value(text(value))})"
            case _ if comparison in _OPERATORS:
                return self._ascii_ordered(column, _OPERATORS[comparison], value)
        return _UNKNOWN

    def _ascii_one_of(self, column: str, compared: str, values: Sequence[Any]) -> str:
        is_text = f"{compared} = ANY({self._value(sql.array(map(text, values)))}::text[])"
        numbers = _numbers(values)
        if not numbers:
            return f"({is_text})"
        trimmed = f"btrim({column}, {_SPACES})"
        is_number = f"{trimmed}::float8 = ANY({self._value(sql.array(numbers))}::float8[])"
        is_number = is_number if all(map(_is_exact, numbers)) else "NULL"
        return f"(CASE WHEN {trimmed} ~ {_NUMBER} THEN {is_number} ELSE {is_text} END)"

    def _ascii_ordered(self, column: str, operator: str, value: Any) -> str:
        if (limit := number(value)) is not None:
            trimmed = f"btrim({column}, {_SPACES})"
            holds = f"{trimmed}::float8 {operator} {self._value(limit)}" if _is_exact(limit) else _UNKNOWN
            return (
                f"(CASE WHEN {trimmed} ~ {_NUMBER} THEN {holds} WHEN {_may_be_typed(column)} THEN NULL ELSE false END)"
            )
        if (at := moment(value)) is None:
            return "false" if typed_number(value) is None and typed_moment(value) is None else _UNKNOWN
        return f"""(CASE WHEN {column} ~ {_TIME} THEN {column}::timestamptz {operator} {self._value(at)}
            WHEN {_may_be_typed(column)} THEN NULL ELSE false END)"""

    def _custom(self, name: str, comparison: str, value: Any) -> str:
        key = self._value(name)
        found = f"(contact.custom_fields ->> {key})"
        true, false = (_known(comparison, each, value) for each in (True, False))
        return f"""(CASE jsonb_typeof(contact.custom_fields -> {key})
            WHEN 'string' THEN {self._text(found, comparison, value)}
            WHEN 'number' THEN CASE WHEN abs({found}::numeric) < {_LARGEST}
                THEN {self._number(f"{found}::float8", comparison, value)} END
            WHEN 'boolean' THEN CASE {found} WHEN 'true' THEN {true} ELSE {false} END
            WHEN 'array' THEN NULL WHEN 'object' THEN NULL
            ELSE CASE WHEN {self._has_in_another_case(name)} THEN NULL ELSE {_known(comparison, None, value)} END
            END)"""

    def _has_in_another_case(self, name: str) -> str:
        """Returns SQL for whether the contact may have the field in another case, which `holds` finds."""
        if not name.isascii():
            return "contact.custom_fields <> '{}'"
        written = json.dumps(name.lower()).decode()
        return f"""strpos(lower(contact.custom_fields::text COLLATE "C"), {self._value(written)}) > 0"""

    def _number(self, found: str, comparison: str, value: Any) -> str:
        if comparison == "exists":
            return "true"
        if comparison in _OPERATORS:
            if (limit := number(value)) is None:
                return "false" if typed_number(value) is None else _UNKNOWN
            return f"{found} {_OPERATORS[comparison]} {self._value(limit)}" if _is_exact(limit) else _UNKNOWN
        if comparison not in ("equals", "one_of"):
            return _UNKNOWN
        values = _values(comparison, value)
        numbers = _numbers(values)
        # Text such as 1e+30 is no number here, but equals a stored number that Python writes like that: the answer is
        # unknown.
        is_exact = all(map(_is_exact, numbers)) and not any(
            text(each)[:1] in "-0123456789" for each in values if number(each) is None
        )
        return f"{found} = ANY({self._value(sql.array(numbers))}::float8[])" if is_exact else _UNKNOWN

    def _time(self, column: str, comparison: str, value: Any) -> str:
        there = _UNKNOWN
        if comparison == "exists":
            there = "true"
        elif comparison in _OPERATORS:
            at = typed_moment(value)
            cut = f"date_trunc('milliseconds', {column})"
            there = "false" if at is None else f"{cut} {_OPERATORS[comparison]} {self._value(at)}"
        return f"(CASE WHEN {column} IS NULL THEN {_known(comparison, None, value)} ELSE {there} END)"

    def _opted_out(self, comparison: str, value: Any) -> str:
        true, false = (_known(comparison, each, value) for each in (True, False))
        return f"(CASE WHEN contact.opted_out THEN {true} ELSE {false} END)"

    def _tags(self, comparison: str, value: Any) -> str:
        if comparison == "exists":
            return "(contact.tags <> '{}')"
        each = {"contains": "equals"}.get(comparison, comparison)
        if each in ("has_word", "matches"):
            return f"(CASE WHEN contact.tags = '{{}}' THEN {_known(comparison, [], value)} END)"
        some = f"(true = ANY(ARRAY(SELECT {self._text('tag', each, value)} FROM unnest(contact.tags) AS tag)))"
        if each != "equals" or number(value) is not None:
            return some
        # A shortcut: most contacts have exactly this tag, or no tag that contains the text.
        joined = "array_to_string(contact.tags, ' ')"
        return f"""(CASE WHEN {self._value(str(value))} = ANY(contact.tags) THEN {_known(comparison, [value], value)}
            WHEN {self._is_unknown(joined, [value])} THEN {some}
            WHEN strpos(lower({joined} COLLATE "C"), {self._value(text(value))}) = 0 THEN false ELSE {some} END)"""

    def _channel_kinds(self, comparison: str, value: Any) -> str:
        """Judges every combination of kinds in Python, because there are few. SQL only looks them up."""
        kinds = sorted(CHANNEL_KINDS)
        sets = [list(some) for size in range(len(kinds) + 1) for some in combinations(kinds, size)]
        judged: dict[bool, list[str]] = {True: [], False: []}
        for some in sets:
            judged[COMPARISONS[comparison](some, value)].append(",".join(some))
        joined = "array_to_string(contact.channel_kinds, ',')"
        return f"""(CASE WHEN {joined} = ANY({self._value(sql.array(judged[True]))}::text[]) THEN true
            WHEN {joined} = ANY({self._value(sql.array(judged[False]))}::text[]) THEN false END)"""

    def _value(self, value: Any) -> str:
        name = f"value_{len(self.values)}"
        self.values[name] = value
        return f"%({name})s"


def needed_tags(condition: Mapping[str, Any]) -> list[str]:
    """Returns the search keys of the tags that a contact must have to meet the condition."""
    if "all" in condition:
        return [tag for each in condition["all"] for tag in needed_tags(each)]
    is_of_tags = condition.get("field") == "contact.tags" and condition["is"] in ("contains", "equals")
    # A number equals tags that are written in other ways, such as 10.0 and 010.
    if not is_of_tags or "value" not in condition or number(condition["value"]) is not None:
        return []
    return [text(condition["value"]).encode("ascii", "ignore").decode()]


def _known(comparison: str, found: Any, value: Any) -> str:
    return "true" if COMPARISONS[comparison](found, value) else "false"


def _may_be_typed(column: str) -> str:
    """Returns SQL for whether only `comparisons` could read the text, as a typed number or time."""
    return f"({column} ~ '[0-9]' OR octet_length({column}) <> length({column}))"


def _values(comparison: str, value: Any) -> list[Any]:
    """Returns the values to compare a field with: for `one_of`, each that exists."""
    return [each for each in value if exists(each)] if comparison == "one_of" else [value]


def _numbers(values: Sequence[Any]) -> list[float]:
    return [each for each in map(number, values) if each is not None]


def _is_exact(value: float) -> bool:
    return abs(value) < _LARGEST

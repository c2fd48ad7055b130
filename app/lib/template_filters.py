"""Template filters: what templates can do to values, with limits on input and output."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import wraps
from inspect import signature
from math import isfinite
from typing import Any
from zoneinfo import ZoneInfo

from liquid import Environment
from liquid.builtin.expressions import KeywordArgument
from liquid.builtin.expressions.filtered import Filter
from liquid.exceptions import FilterArgumentError, UnknownFilterError
from liquid.undefined import Undefined

from app.lib import clock, graphemes, json, normalization, time_zones

LONGEST_TEXT = 64 * 1024
LONGEST_LIST = 10_000
LARGEST_NUMBER = 2**63
LONGEST_TIME = 100

_DAY = re.compile(r"[0-9]{4}-?[0-9]{2}-?[0-9]{2}", re.ASCII)
# Excludes '<' inside a tag: otherwise, text full of '<' would be searched to its end from every '<'.
_HTML_TAG = re.compile(r"<[^<>]*>")


def text_of(value: Any) -> str:
    """Returns the value as templates print it: objects as JSON, times as in the API, "" for nil."""
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, Undefined):
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "".join(map(text_of, value))
    if isinstance(value, dict):
        return json.dumps(value).decode()
    return json.timestamp(value) if isinstance(value, datetime) else str(value)


def cost(value: Any) -> int:
    """Returns the cost of working on the value, in the units of a template's budget."""
    if isinstance(value, str):
        return len(value) // 64
    if isinstance(value, (list, dict)):
        return len(value) + sum(map(cost, value.values() if isinstance(value, dict) else value))
    return len(value) if isinstance(value, range) else 0


def within_limits(value: Any) -> Any:
    """Returns the value. Raises FilterArgumentError if it exceeds the limits of templates."""
    if isinstance(value, str) and len(value) > LONGEST_TEXT:
        raise _refused(f"a text has more than {LONGEST_TEXT:,} characters")
    if isinstance(value, list) and len(value) > LONGEST_LIST:
        raise _refused(f"a list has more than {LONGEST_LIST:,} elements")
    if isinstance(value, (int, float)) and not (isfinite(value) and abs(value) <= LARGEST_NUMBER):
        raise _refused("a number is out of range")
    return value


def check(used: Filter) -> None:
    """Raises LiquidError if the filter does not exist, or does not take these arguments."""
    if used.name not in FILTERS:
        known = ", ".join(sorted(FILTERS))
        raise UnknownFilterError(
            f"there is no filter '{used.name[:LONGEST_TIME]}'; there are {known}", token=used.token
        )
    parameters = list(signature(FILTERS[used.name]).parameters.values())[1:]
    positional = [each for each in parameters if each.kind is not each.KEYWORD_ONLY]
    least = sum(each.default is each.empty for each in positional)
    named = {each.name for each in used.args if isinstance(each, KeywordArgument)}
    if not least <= len(used.args) - len(named) <= len(positional):
        many = f"{least}" if least == len(positional) else f"{least} to {len(positional)}"
        raise FilterArgumentError(f"the number of arguments of '{used.name}' must be {many}", token=used.token)
    if unknown := named - {each.name for each in parameters if each.name not in ("environment", "zone")}:
        raise FilterArgumentError(f"the filter '{used.name}' has no argument '{min(unknown)}'", token=used.token)


def _limited(call: Callable[..., Any], *, of_text: bool) -> Callable[..., Any]:
    """Wraps a filter to charge and limit its values. `of_text`: the filter gets its value as text."""
    in_zone = "zone" in signature(call).parameters

    @wraps(call)
    def limited(value: Any, *arguments: Any, context: Any, **named: Any) -> Any:
        for given in (value, *arguments, *named.values()):
            if given is not context.env:
                within_limits(given)
                context.spend(cost(given))
        if in_zone:
            owners = (context.globals.get(name) or {} for name in ("contact", "workspace"))
            named["zone"] = time_zones.first_known(*(owner.get("timezone") for owner in owners))
        result = within_limits(call(text_of(value) if of_text else value, *arguments, **named))
        context.spend(1 + cost(result))
        return result

    limited.with_context = True  # type: ignore[attr-defined]
    return limited


def _replace(value: str, old: Any, new: Any = "") -> str:
    old, new = text_of(old), text_of(new)
    if len(value) + value.count(old) * (len(new) - len(old)) > LONGEST_TEXT:
        raise _refused(f"a text has more than {LONGEST_TEXT:,} characters")
    return value.replace(old, new)


def _join(value: Any, separator: Any = " ") -> str:
    parts = list(map(text_of, value if isinstance(value, (list, range)) else [value]))
    if sum(map(len, parts)) + len(parts) * len(text_of(separator)) > LONGEST_TEXT:
        raise _refused(f"a text has more than {LONGEST_TEXT:,} characters")
    return text_of(separator).join(parts)


def _uniq(value: Any) -> list[Any]:
    """Removes repeated elements, by their JSON: comparing each with all others would take too long."""
    first: dict[bytes, Any] = {}
    for each in value if isinstance(value, list) else [value]:
        first.setdefault(json.dumps(each), each)
    return list(first.values())


def _date(value: Any, form: Any, timezone: Any = None, *, zone: ZoneInfo) -> str:
    """Formats a time with strftime, in `timezone` or else in `zone`. Returns other values unchanged.

    A date has no time zone. A time without one is converted only if the template names `timezone`. Raises
    FilterArgumentError for an unknown `timezone` or a long `form`.
    """
    time = _read(value)
    if time is None:
        return text_of(value)
    if len(text_of(form)) > LONGEST_TIME:
        raise _refused(f"the form of a date has more than {LONGEST_TIME} characters")
    if text_of(timezone):
        try:
            zone = ZoneInfo(normalization.timezone(text_of(timezone)))
        except ValueError as error:
            raise _refused(str(error)) from error
    if time.tzinfo or (text_of(timezone) and not _DAY.fullmatch(text_of(value))):
        time = (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(zone)
    return time.strftime(text_of(form) or "%Y-%m-%d %H:%M")


def _adding(unit: str) -> Callable[[Any, Any], str]:
    def add(value: Any, amount: Any) -> str:
        time = _read(value)
        if time is None:
            raise _refused(f"'{text_of(value)[:LONGEST_TIME]}' is not a time")
        time = time if time.tzinfo else time.replace(tzinfo=UTC)
        return json.timestamp(time + timedelta(**{unit: float(text_of(amount) or 0)}))

    return add


def _read(value: Any) -> datetime | None:
    """Reads an RFC 3339 time, seconds since 1970, or "now"; None for anything else."""
    if isinstance(value, datetime):
        return value
    text = text_of(value)
    if text == "now":
        return clock.now()
    try:
        if re.fullmatch(r"-?[0-9]{1,12}(\.[0-9]+)?", text, re.ASCII):
            return datetime.fromtimestamp(float(text), UTC)
        return datetime.fromisoformat(text) if len(text) <= LONGEST_TIME else None
    except (ValueError, OverflowError):
        return None


def _truncate(value: str, num: Any = 50, end: Any = "...") -> str:
    """Like Liquid's `truncate`, but never splits a grapheme."""
    made, ending = str(_LIQUID["truncate"](value, num, end)), text_of(end)
    return made if made in (value, ending) else graphemes.cut(value, len(made) - len(ending)) + ending


def _split(value: str, separator: Any) -> list[str]:
    """Like Liquid's `split`, but an empty separator never splits a grapheme."""
    return list(_LIQUID["split"](value, separator)) if text_of(separator) else graphemes.split(value)


def _slice(value: Any, start: Any, length: Any = 1) -> Any:
    """Like Liquid's `slice`, but counts the graphemes of a text, so that it never splits one."""
    if isinstance(value, list):
        return _LIQUID["slice"](value, start, length)
    return "".join(_LIQUID["slice"](graphemes.split(text_of(value)), start, length))


def _refused(reason: str) -> FilterArgumentError:
    return FilterArgumentError(reason, token=None)


_LIQUID = Environment().filters
_OF_TEXT: Mapping[str, Callable[..., Any]] = {
    **{
        name: _LIQUID[name]
        for name in (
            *("base64_decode", "base64_encode", "capitalize", "downcase", "escape", "lstrip", "newline_to_br"),
            *("rstrip", "squish", "strip", "strip_newlines", "truncatewords", "upcase"),
            *("url_decode", "url_encode"),
        )
    },
    "append": lambda value, text: value + text_of(text),
    "prepend": lambda value, text: text_of(text) + value,
    "remove": lambda value, text: value.replace(text_of(text), ""),
    "remove_first": lambda value, text: value.replace(text_of(text), "", 1),
    "replace": _replace,
    "replace_first": lambda value, old, new="": value.replace(text_of(old), text_of(new), 1),
    "split": _split,
    "strip_html": lambda value: _HTML_TAG.sub("", value),
    "truncate": _truncate,
}
_OF_ANYTHING: Mapping[str, Callable[..., Any]] = {
    **{
        name: _LIQUID[name]
        for name in (
            *("abs", "at_least", "at_most", "ceil", "compact", "concat", "default", "divided_by", "first", "floor"),
            *("last", "map", "minus", "modulo", "plus", "reverse", "round", "size", "sort", "sort_natural"),
            *("sum", "times", "where"),
        )
    },
    "add_days": _adding("days"),
    "add_hours": _adding("hours"),
    "add_minutes": _adding("minutes"),
    "date": _date,
    "join": _join,
    "json": lambda value: json.dumps(None if isinstance(value, Undefined) else value).decode(),
    "slice": _slice,
    "uniq": _uniq,
}
FILTERS: Mapping[str, Callable[..., Any]] = {
    **{name: _limited(call, of_text=True) for name, call in _OF_TEXT.items()},
    **{name: _limited(call, of_text=False) for name, call in _OF_ANYTHING.items()},
}

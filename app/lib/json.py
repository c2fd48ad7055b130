"""JSON as Bellhop reads and writes it: strict on the way in, UTC milliseconds on the way out."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from json import JSONDecoder
from typing import Any

import orjson

# orjson writes at most 254 levels. A value of MAX_DEPTH levels can still be nested in a response or an event.
MAX_DEPTH = 128


def dumps(value: object) -> bytes:
    """Serializes `value` as compact UTF-8 JSON. Raises TypeError for values that JSON cannot express."""
    return orjson.dumps(value, default=_default, option=orjson.OPT_PASSTHROUGH_DATETIME)


def verbatim(raw: bytes) -> object:
    """Wraps a JSON text, so that `dumps` writes it unchanged."""
    return orjson.Fragment(raw)


def loads(raw: bytes | str) -> Any:
    """Parses a JSON text.

    Raises ValueError for malformed JSON, NaN, invalid UTF-8, lone surrogates and more than MAX_DEPTH levels. Also for
    duplicate keys in an object, because parsers disagree on which value counts (RFC 8259, section 4).
    """
    value = orjson.loads(raw)
    data = raw if isinstance(raw, bytes) else raw.encode()
    if data.count(b"[") + data.count(b"{") > MAX_DEPTH and is_deep(value):
        raise ValueError(f"it is nested more than {MAX_DEPTH} levels deep")
    # With no more colons than distinct keys, no key can occur twice.
    if data.count(b":") > _count_keys(value):
        _KEYS.decode(data.decode())
    return value


def is_deep(value: object) -> bool:
    """Whether the value has more than MAX_DEPTH levels."""
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [
            inner
            for outer in level
            if isinstance(outer, (dict, list))
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
    return bool(level)


def timestamp(moment: datetime) -> str:
    """Formats a time as `2026-11-21T10:00:00.000Z` (RFC 3339). Raises ValueError without a zone."""
    if moment.tzinfo is None:
        raise ValueError("a time must have a zone")
    if moment.tzinfo is not UTC:  # skipped for most times, which are in UTC already
        moment = moment.astimezone(UTC)
    return moment.isoformat(timespec="milliseconds")[:-6] + "Z"


def _default(value: object) -> str:
    if isinstance(value, datetime):
        return timestamp(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _refuse_repeated(members: list[tuple[str, Any]]) -> None:
    seen = set()
    for key, _ in members:
        if key in seen:
            raise ValueError(f"the key '{key[:100]}' is there twice in one object")
        seen.add(key)


def _count_keys(value: object) -> int:
    if isinstance(value, dict):
        return len(value) + sum(map(_count_keys, value.values()))
    return sum(map(_count_keys, value)) if isinstance(value, list) else 0


# Finds duplicate keys, which orjson does not report.
_KEYS = JSONDecoder(object_pairs_hook=_refuse_repeated, parse_int=str, parse_float=str)

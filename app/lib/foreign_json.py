"""JSON as other servers write it: read although it breaks rules that our own JSON keeps."""

from __future__ import annotations

from json import JSONDecoder
from math import isfinite
from typing import Any

from app.lib import json


def loads(text: str) -> Any:
    """Parses JSON into values that PostgreSQL and `json.dumps` can hold. Raises ValueError.

    Integers of more than 64 bits become text, and other numbers that are too large None, as do NaN and infinity. The
    last of repeated keys counts. Removes NULs, and replaces halves of characters outside the BMP.
    """
    try:
        value = _DECODER.decode(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if json.is_deep(value):
        raise ValueError(f"it is nested more than {json.MAX_DEPTH} levels deep")
    return _storable(value)


def _integer(digits: str) -> int | str:
    number = int(digits) if len(digits) <= 20 else None
    return digits if number is None or not -(2**63) <= number < 2**63 else number


def _fraction(digits: str) -> float | None:
    number = float(digits)
    return number if isfinite(number) else None


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        plain = value.replace("\0", "")
        return plain if plain.isascii() else plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_storable(name): _storable(inner) for name, inner in value.items()}
    return [_storable(inner) for inner in value] if isinstance(value, list) else value


_DECODER = JSONDecoder(strict=False, parse_int=_integer, parse_float=_fraction, parse_constant=lambda _: None)

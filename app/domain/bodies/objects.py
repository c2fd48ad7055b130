"""Parses the JSON objects that callers send."""

from __future__ import annotations

from json import loads as loads_leniently
from typing import Any

from app.domain.bodies.pointers import refuse_bad_text
from app.errors import Fault, Invalid, Malformed
from app.lib import json

MAX_BODY_BYTES = 256 * 1024
OBJECT_REQUIRED = Fault("", "A JSON object is required.")


def object_in(raw: bytes) -> dict[str, Any]:
    """Parses the JSON object in `raw`.

    Raises Malformed if `raw` is not JSON in UTF-8, and Invalid for any other value or text that cannot be stored.
    """
    value = _read_json(raw)
    if not isinstance(value, dict):
        raise Invalid(OBJECT_REQUIRED)
    return value


def _read_json(raw: bytes) -> Any:
    try:
        value = json.loads(raw)
    except ValueError as error:
        if b"\\ud" in raw.lower():
            _refuse_lone_surrogates(raw)
        if not _is_utf8(raw):
            raise Malformed("The body is not UTF-8. Send JSON in UTF-8, not in Latin-1 or UTF-16.") from error
        raise Malformed(f"The body is not valid JSON: {error}.") from error
    if b"\\u0000" in raw:
        refuse_bad_text(value)
    return value


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def _refuse_lone_surrogates(raw: bytes) -> None:
    """Raises Invalid with pointers to the lone surrogates in `raw`, which orjson does not locate."""
    try:
        value = loads_leniently(raw)
    except (ValueError, RecursionError):
        return
    refuse_bad_text(value)

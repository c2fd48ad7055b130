"""Pointers: locates the faults of a request with RFC 6901 pointers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import marshmallow
from marshmallow import ValidationError, fields

from app.errors import MAX_FAULTS, Fault, Invalid, pointer_to
from app.lib.nearest_names import meant_or_listed
from app.lib.schemas import UNKNOWN

_BAD = re.compile("[\x00\ud800-\udfff]")
_BAD_TEXT = "The text contains a character that cannot be stored (U+0000 or half of a surrogate pair)."


# In an object with more fields than this, unknown fields are refused before marshmallow sees them: it takes ten times
# as long for an unknown field as for a known one.
_MANY = 1_000
# For more unknown fields than this in one object, the nearest known names are not looked up.
_MOST_NAMED = 20


def load(schema: marshmallow.Schema, value: dict[str, Any]) -> Any:
    """Validates and converts `value` by `schema`. Raises Invalid, with a pointer to each fault."""
    if len(value) > _MANY and schema.unknown == marshmallow.RAISE:
        known = {field.data_key or name for name, field in schema.load_fields.items()}
        unknown = [key for key in value if key not in known]
        shown = [Fault(pointer_to(key), UNKNOWN) for key in unknown[:MAX_FAULTS]]
        raise Invalid(*shown, *shown[-1:] * (len(unknown) - len(shown)))  # the others are only counted
    try:
        return schema.load(value)
    except ValidationError as error:
        raise Invalid(*_faults(error.messages, "", schema)) from error


def refuse_bad_text(value: Any) -> None:
    """Raises Invalid if a string in `value` contains U+0000 or a lone surrogate."""
    try:
        places = list(_bad_texts(value, "")) if _has_bad_text(value) else []
    except RecursionError:
        return
    if places:
        raise Invalid(*(Fault(place, _BAD_TEXT) for place in places))


def _has_bad_text(value: Any) -> bool:
    """Whether `value` has bad text. Much faster than finding the places, and almost always False."""
    if isinstance(value, str):
        return _is_bad(value)
    if isinstance(value, dict):
        return any(map(_is_bad, value)) or any(map(_has_bad_text, value.values()))
    return isinstance(value, list) and any(map(_has_bad_text, value))


def _bad_texts(value: Any, at: str) -> Iterator[str]:
    if isinstance(value, str):
        if _is_bad(value):
            yield at
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _bad_texts(inner, f"{at}/{index}")
    elif isinstance(value, dict):
        for key, inner in value.items():
            if _is_bad(key):
                yield at
            else:
                yield from _bad_texts(inner, at + pointer_to(key))


def _is_bad(text: str) -> bool:
    return _BAD.search(text) is not None


def _faults(messages: object, at: str, shape: object) -> Iterator[Fault]:
    """Yields marshmallow's error messages as faults. `shape`: the schema or field they are about."""
    if isinstance(messages, dict):
        for key, inner in messages.items():
            if key == "_schema":
                yield from _faults(inner, at, shape)
            elif isinstance(shape, fields.Mapping) and isinstance(inner, dict) and inner.keys() <= {"key", "value"}:
                # For mappings marshmallow adds a level that separates a wrong key from a wrong value.
                yield from _faults(inner.get("key", []), at + pointer_to(key), None)
                yield from _faults(inner.get("value", []), at + pointer_to(key), shape.value_field)
            elif inner == [UNKNOWN] and len(messages) <= _MOST_NAMED:
                yield Fault(at + pointer_to(key), UNKNOWN + meant_or_listed(str(key), _names_in(shape)))
            else:
                yield from _faults(inner, at + pointer_to(key), _inside(shape, key))
    elif isinstance(messages, list):
        for message in messages:
            yield from _faults(message, at, shape)
    else:
        yield Fault(at, str(messages))


def _names_in(shape: object) -> Iterable[str]:
    """Returns the field names of a schema, or of the schema nested in a field; () for any other."""
    schema = shape.schema if isinstance(shape, fields.Nested) else shape
    return schema.load_fields if isinstance(schema, marshmallow.Schema) else ()


def _inside(shape: object, key: object) -> object:
    """Returns the schema or field at `key` of `shape`; None if there is none."""
    if isinstance(shape, fields.List):
        return shape.inner
    if isinstance(shape, fields.Nested):
        shape = shape.schema
    if isinstance(shape, marshmallow.Schema):
        return shape if isinstance(key, int) else shape.fields.get(str(key))
    return None

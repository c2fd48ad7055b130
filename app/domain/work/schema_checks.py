"""Checks values against their JSON Schemas, with sentences that say what to do.

A schema with a `pattern` has an `x-form`, which describes the pattern in words that follow "Give".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from app.errors import Fault, pointer_to
from app.lib.nearest_names import meant

_TYPES = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
    "object": "an object",
    "array": "a list",
}


def faults(value: Any, schema: Mapping[str, Any], pointer: str) -> Iterator[Fault]:
    """Yields a fault for each error in the value. `pointer`: the JSON pointer to the value itself."""
    for error in Draft202012Validator(schema).iter_errors(value):
        at = pointer + pointer_to(*error.absolute_path)
        if error.validator == "additionalProperties" and error.validator_value is False:
            known = error.schema.get("properties", {})
            for name in sorted(error.instance.keys() - known.keys()):
                yield Fault(at + pointer_to(name), f"Unknown field.{meant(name, known)}")
        elif error.validator == "required":
            missing = [name for name in error.validator_value if name not in error.instance]
            yield from (Fault(at + pointer_to(name), "Give this field.") for name in missing[:1])
        else:
            yield Fault(at, _sentence(error))


def _sentence(error: ValidationError) -> str:
    schema: Any = error.schema
    if error.validator == "pattern":
        return f"Give {schema['x-form']}."
    say = _SENTENCES.get(str(error.validator))
    return say(error.validator_value) if say else f"This does not fit: {error.message[:200]}."


def _types(given: Any) -> str:
    names = [_TYPES[name] for name in ([given] if isinstance(given, str) else given)]
    return f"Give {' or '.join([', '.join(names[:-1]), names[-1]] if len(names) > 1 else names)}."


_SENTENCES: Mapping[str, Callable[[Any], str]] = {
    "type": _types,
    "enum": lambda values: f"Give {_or(values)}.",
    "const": lambda value: f"Give {_or([value])}.",
    "minimum": lambda least: f"Give a number of at least {least:,}.",
    "maximum": lambda most: f"Give a number of at most {most:,}.",
    "minLength": lambda least: f"Give text of at least {least:,} {'character' if least == 1 else 'characters'}.",
    "maxLength": lambda most: f"Give text of at most {most:,} characters.",
    "minItems": lambda least: f"Give a list of at least {least:,}.",
    "maxItems": lambda most: f"Give a list of at most {most:,}.",
    "minProperties": lambda least: f"Give at least {least:,} members.",
    "maxProperties": lambda most: f"Give at most {most:,} members.",
}


def _or(values: list[Any]) -> str:
    return " or ".join(repr(value) for value in values) if len(values) < 3 else "one of " + ", ".join(map(repr, values))

"""Renders and checks fields with templates: texts that are normalized, and JSON values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from app.domain.automations.steps.base import StepContext, StepFailed
from app.errors import Fault, pointer_to
from app.lib import json, templates
from app.lib.templates import TooLong

T = TypeVar("T")


def kept(context: StepContext, value: Any, most_bytes: int, too_long: str) -> Any:
    """Returns the value, rendered. Raises StepFailed `limit` if its JSON exceeds `most_bytes`."""
    try:
        found = templates.fill(value, context.render, most_bytes)
    except TooLong as error:
        raise StepFailed("limit", too_long) from error
    if len(json.dumps(found)) > most_bytes:
        raise StepFailed("limit", too_long)
    return found


def with_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Returns a copy of the JSON value with `change` applied to its strings, at any depth."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {name: with_texts(inner, change) for name, inner in value.items()}
    return [with_texts(inner, change) for inner in value] if isinstance(value, list) else value


def read(context: StepContext, name: str, reader: Callable[[str], T]) -> T:
    """Renders the field, and reads it with `reader`. Raises StepFailed if that raises ValueError."""
    try:
        return reader(context.render(context.step.fields[name]))
    except ValueError as error:
        raise StepFailed("error", str(error)) from error


def check(name: str, reader: Callable[[str], object], step: Mapping[str, Any], pointer: str) -> Iterator[Fault]:
    """Yields the fault that `reader` finds in the field, if the field is not a template."""
    text = step.get(name)
    if isinstance(text, str) and "{" not in text:
        try:
            reader(text)
        except ValueError as error:
            yield Fault(pointer + pointer_to(name), str(error))

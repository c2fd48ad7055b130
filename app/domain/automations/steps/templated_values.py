"""Values of any shape whose strings are templates."""

from __future__ import annotations

from typing import Any

from app.domain.automations.steps.base import Moment, StepFailed
from app.lib import json


class TooLong(Exception):
    """The rendered strings are longer than they may be together."""


def kept(moment: Moment, value: Any, most_bytes: int, too_long: str) -> Any:
    """The rendered value, which the run keeps. Raises StepFailed `limit` with that sentence if its JSON is too long."""
    try:
        found = rendered(moment, value, most_bytes)
    except TooLong as error:
        raise StepFailed("limit", too_long) from error
    if len(json.dumps(found)) > most_bytes:
        raise StepFailed("limit", too_long)
    return found


def rendered(moment: Moment, value: Any, most_bytes: int) -> Any:
    """The value with its strings rendered, at any depth. Raises TooLong as soon as it is clear, and StepFailed."""
    left = most_bytes

    def render(each: Any) -> Any:
        nonlocal left
        if isinstance(each, str):
            text = moment.render(each)
            left -= len(text.encode())
            if left < 0:
                raise TooLong
            return text
        if isinstance(each, dict):
            return {name: render(inner) for name, inner in each.items()}
        return [render(inner) for inner in each] if isinstance(each, list) else each

    return render(value)

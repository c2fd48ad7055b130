"""Values of any shape whose strings are templates."""

from __future__ import annotations

from typing import Any

from app.domain.automations.steps.base import Moment


class TooLong(Exception):
    """The rendered strings are longer than they may be together."""


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

"""Times in steps: read from what a template gives."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from app.domain.automations.steps.base import Moment, StepFailed

# The JSON Schema of a field that holds one.
FIELD = {"type": "string", "minLength": 1, "maxLength": 4096}


def rendered(moment: Moment, template: str) -> datetime:
    """The time that the template gives, in UTC. Raises StepFailed `error` if it gives none."""
    try:
        return read(moment.render(template))
    except ValueError as error:
        raise StepFailed("error", str(error)) from error


def fault(template: Any) -> str | None:
    """What is wrong with a time that is no template; None if nothing is."""
    if isinstance(template, str) and "{" not in template:
        try:
            read(template)
        except ValueError as error:
            return str(error)
    return None


def read(text: str) -> datetime:
    """The time in UTC. Raises ValueError with a sentence."""
    try:
        time = datetime.fromisoformat(text.strip().upper())
    except ValueError as error:
        raise ValueError(f"'{text[:100]}' is not a time. Give one such as 2026-11-21T10:00:00Z.") from error
    if time.tzinfo is None:
        raise ValueError(f"'{text[:100]}' has no time zone. Give a time such as 2026-11-21T10:00:00Z.")
    if not 1970 < time.year < 9998:
        raise ValueError(f"'{text[:100]}' lies too far away.")
    return time.astimezone(UTC)

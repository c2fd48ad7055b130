"""Times in steps: a number of seconds from now, or a time that a template renders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from app.domain.automations.steps import templated_values
from app.domain.automations.steps.base import StepContext, whole_number
from app.domain.triggers.plain_words import Given, cut, duration
from app.errors import Fault

DAY_SECONDS = 24 * 60 * 60
LONGEST_SECONDS = 90 * DAY_SECONDS  # the longest wait of a step
# The JSON Schemas of fields with a time.
FIELD = {"type": "string", "minLength": 1, "maxLength": 4096}
UNTIL = FIELD | {"description": "A time (RFC 3339), or a template that gives one."}
TIMEOUT = whole_number(1, LONGEST_SECONDS, "How long to wait; 90 days at most.", default=LONGEST_SECONDS)


def until(context: StepContext) -> datetime:
    """Returns when `seconds` have passed, or the time of `until`, in UTC. Raises StepFailed `error`."""
    if "seconds" in context.step.fields:
        return context.now + timedelta(seconds=context.step.fields["seconds"])
    return templated_values.read(context, "until", read)


def deadline(context: StepContext) -> datetime:
    """Returns when the step's wait times out: in `timeout_seconds`, or else in LONGEST_SECONDS."""
    return context.now + timedelta(seconds=context.step.fields.get("timeout_seconds", LONGEST_SECONDS))


def check(step: Mapping[str, Any], pointer: str) -> Iterator[Fault]:
    """Yields the faults of `seconds` and `until`. A step has exactly one of them."""
    if ("seconds" in step) == ("until" in step):
        yield Fault(pointer, "Give either 'seconds' or 'until'.")
    yield from templated_values.check("until", read, step, pointer)


def in_words(step: Given, before: str = "") -> str:
    """Describes `seconds` (after the word `before`) or `until`. Raises KeyError if there is neither."""
    return before + duration(step["seconds"]) if "seconds" in step else f"until {cut(str(step['until']), 60)}"


def read(text: str) -> datetime:
    """Reads a time in UTC. Raises ValueError, with a sentence."""
    try:
        time = datetime.fromisoformat(text.strip().upper())
    except ValueError as error:
        raise ValueError(f"'{text[:100]}' is not a time. Give one such as 2026-11-21T10:00:00Z.") from error
    if time.tzinfo is None:
        raise ValueError(f"'{text[:100]}' has no time zone. Give a time such as 2026-11-21T10:00:00Z.")
    if not 1970 < time.year < 9998:
        raise ValueError(f"'{text[:100]}' lies too far away.")
    return time.astimezone(UTC)

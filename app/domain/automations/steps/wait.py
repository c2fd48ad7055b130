"""`wait`: lets time pass."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from app.domain.automations.steps.base import Done, Kind, Moment, Outcome, StepFailed, Wait
from app.errors import Fault
from app.lib.json import timestamp

LONGEST_SECONDS = 90 * 24 * 60 * 60


def begin(moment: Moment) -> Outcome:
    """Waits until the time comes; goes on at once if it has passed. Raises StepFailed if there is no time."""
    fields = moment.step.fields
    if "seconds" in fields:
        until = moment.now + timedelta(seconds=fields["seconds"])
    else:
        until = _rendered(moment, fields["until"])
    given = {"until": timestamp(until)}
    if until <= moment.now:
        return Done(f"The time to wait for, {given['until']}, had passed.", given)
    return Wait("time", f"The run waits until {given['until']}.", until, given)


def check(step: Mapping[str, Any], pointer: str) -> Iterator[Fault]:
    """Yields what is wrong with the time to wait for."""
    if ("seconds" in step) == ("until" in step):
        yield Fault(pointer, "Give either 'seconds' or 'until'.")
    until = step.get("until")
    if isinstance(until, str) and "{" not in until:
        try:
            _read(until)
        except ValueError as error:
            yield Fault(f"{pointer}/until", str(error))


def _rendered(moment: Moment, template: str) -> datetime:
    try:
        return _read(moment.render(template))
    except ValueError as error:
        raise StepFailed("error", str(error)) from error


def _read(text: str) -> datetime:
    """The time in UTC. Raises ValueError."""
    try:
        time = datetime.fromisoformat(text.strip().upper())
    except ValueError as error:
        raise ValueError(f"'{text[:100]}' is not a time. Give one such as 2026-11-21T10:00:00Z.") from error
    if time.tzinfo is None:
        raise ValueError(f"'{text[:100]}' has no time zone. Give a time such as 2026-11-21T10:00:00Z.")
    if not 1970 < time.year < 9998:
        raise ValueError(f"'{text[:100]}' lies too far away.")
    return time.astimezone(UTC)


KIND = Kind(
    description="Waits for some seconds, or until a time; continues at once if the time has passed.",
    fields={
        "seconds": {
            "type": "integer",
            "minimum": 0,
            "maximum": LONGEST_SECONDS,
            "description": "How long to wait; 90 days at most.",
        },
        "until": {
            "type": "string",
            "minLength": 1,
            "maxLength": 4096,
            "description": "A time (RFC 3339), or a template that gives one.",
        },
    },
    templates=("until",),
    check=check,
    waits=True,
    begin=begin,
    example={"kind": "wait", "seconds": 86400},
)

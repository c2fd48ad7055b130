"""`wait`: lets time pass."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from app.domain.automations.steps import times
from app.domain.automations.steps.base import Done, Kind, Moment, Outcome, Wait
from app.errors import Fault
from app.lib.json import timestamp

LONGEST_SECONDS = 90 * 24 * 60 * 60


def begin(moment: Moment) -> Outcome:
    """Waits until the time comes; goes on at once if it has passed. Raises StepFailed if there is no time."""
    fields = moment.step.fields
    if "seconds" in fields:
        until = moment.now + timedelta(seconds=fields["seconds"])
    else:
        until = times.rendered(moment, fields["until"])
    given = {"until": timestamp(until)}
    if until <= moment.now:
        return Done(f"The time to wait for, {given['until']}, had passed.", given)
    return Wait("time", f"The run waits until {given['until']}.", until, given)


def check(step: Mapping[str, Any], pointer: str) -> Iterator[Fault]:
    """Yields what is wrong with the time to wait for."""
    if ("seconds" in step) == ("until" in step):
        yield Fault(pointer, "Give either 'seconds' or 'until'.")
    if (wrong := times.fault(step.get("until"))) is not None:
        yield Fault(f"{pointer}/until", wrong)


KIND = Kind(
    description="Waits for some seconds, or until a time; continues at once if the time has passed.",
    fields={
        "seconds": {
            "type": "integer",
            "minimum": 0,
            "maximum": LONGEST_SECONDS,
            "description": "How long to wait; 90 days at most.",
        },
        "until": times.FIELD | {"description": "A time (RFC 3339), or a template that gives one."},
    },
    templates=("until",),
    check=check,
    waits=True,
    begin=begin,
    example={"kind": "wait", "seconds": 86400},
)

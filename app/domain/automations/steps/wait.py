"""`wait`: waits for a number of seconds, or until a time."""

from __future__ import annotations

from app.domain.automations.steps import times
from app.domain.automations.steps.base import Done, Entry, Outcome, StepContext, StepKind, Wait, Words, whole_number
from app.lib.json import timestamp


def begin(context: StepContext) -> Outcome:
    """Waits until the time, unless it has passed. Raises StepFailed for an invalid time."""
    until = times.until(context)
    given = {"until": timestamp(until)}
    if until <= context.now:
        return Done(f"The time to wait for, {given['until']}, had passed.", given)
    return Wait("time", f"The run waits until {given['until']}.", until, given)


KIND = StepKind(
    entry=Entry("Wait", "clock", members={"seconds": times.DAY_SECONDS}),
    words=lambda step, names: Words(f"Wait {times.in_words(step)}"),
    description="Waits for some seconds, or until a time; continues at once if the time has passed.",
    fields={
        "seconds": whole_number(0, times.LONGEST_SECONDS, "How long to wait; 90 days at most."),
        "until": times.UNTIL,
    },
    templates=("until",),
    check=times.check,
    waits=True,
    begin=begin,
    example={"seconds": 86400},
)

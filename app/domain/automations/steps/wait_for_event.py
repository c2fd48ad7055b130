"""`wait_for_event`: waits for an event of the contact."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.domain.automations.steps import times, wait_for_reply
from app.domain.automations.steps.base import Done, Entry, Outcome, StepContext, StepKind, Wait, Words, saved
from app.domain.triggers import awaited_events, event_kinds
from app.domain.triggers.plain_words import Given, Names, condition, event
from app.lib.json import timestamp


def begin(context: StepContext) -> Outcome:
    """Waits for the event.

    As the first step of a run, continues at once if the event has happened since the run was triggered or started.
    """
    fields = context.step.fields
    awaited = {name: fields[name] for name in KIND.trigger if name in fields}
    is_first = context.run.logged == 0 and not context.is_simulated
    if is_first and (event := awaited_events.missed(context.unit, context.run, awaited)) is not None:
        return _occurred(context, event)
    until = times.deadline(context)
    waiting = {**context.run.saved, context.step.id: awaited_events.expect(context.unit, context.run, awaited)}
    text = f"The run waits for '{fields['event']}' until {timestamp(until)}."
    return Wait("event", text, until, run_fields={"saved": waiting})


def resume(context: StepContext) -> Outcome:
    """Continues with the event, or with `otherwise` after a timeout."""
    if context.answer is not None:
        return _occurred(context, context.answer["event"])
    result = {"event": None, "timed_out": True}
    return Done("No such event happened in time.", output=result, saved=saved(context, result, None), to="otherwise")


def _occurred(context: StepContext, event: Mapping[str, Any]) -> Done:
    result = {"event": event, "timed_out": False}
    return Done(f"'{context.step.fields['event']}' happened.", output=result, saved=saved(context, result, event))


def _words(step: Given, names: Names) -> Words:
    return Words("Wait for an event", event(step) + (f", if {condition(step['if'])}" if "if" in step else ""))


KIND = StepKind(
    entry=Entry(
        "Wait for an event", "hourglass", "event", {"event": "message.received", "timeout_seconds": times.DAY_SECONDS}
    ),
    words=_words,
    way=lambda step, key: ("Not in time", f"If it does not happen{wait_for_reply.within(step)}"),
    past=("Happened", "When it has happened"),
    description="Waits until an event of the contact happens, then goes on; after the timeout come the steps of"
    " `otherwise`. An event that happened after the step before took effect counts too, one that the run caused does"
    " not. `steps.<id>.event` is the event.",
    fields={
        **event_kinds.FIELDS,
        "if": {
            "$ref": "#/components/schemas/Condition",
            "description": "Only if this holds, for what exits can name: `trigger.event` is the event at hand,"
            " `run.trigger.event` the one that started the run.",
        },
        "timeout_seconds": times.TIMEOUT,
        "save_as": {
            **wait_for_reply.KIND.fields["save_as"],
            "description": "Another name in `steps`, for the event alone; null if none came.",
        },
        "otherwise": {"description": "The steps to take if no such event happens in time."},
    },
    required=("event",),
    trigger=("event", "tag", "if"),
    lists=("otherwise",),
    waits=True,
    results=("event", "timed_out"),
    begin=begin,
    resume=resume,
    example={
        "event": "sale.recorded",
        "if": {"field": "trigger.event.data.sale.amount", "is": "greater_than", "value": 0},
        "timeout_seconds": 86400,
        "otherwise": [],
    },
)

"""`snooze_conversation`: snoozes the conversation until a time, or until the contact writes."""

from __future__ import annotations

from app.domain.automations.steps import times
from app.domain.automations.steps.base import Done, Entry, Kind, Moment, Outcome, StepFailed, Words
from app.domain.conversations import conversations, snoozes
from app.lib.json import timestamp


def begin(moment: Moment) -> Outcome:
    """Snoozes the conversation if it is open. Raises StepFailed for an invalid or too distant time."""
    until = times.until(moment)
    given = {"until": timestamp(until)}
    done = f"The conversation is snoozed until {given['until']}."
    if until <= moment.now:
        return Done(f"The time to wake, {given['until']}, had passed.", given)
    if not snoozes.is_possible(until, moment.now):
        raise StepFailed("error", f"{given['until']} is more than {snoozes.MOST_DAYS} days away.")
    if moment.is_simulated:
        return Done(done, given)
    conversation = conversations.of_run(moment.unit, moment.run)
    if conversation is None:
        return Done("The contact has no conversation.", given, code="no_channel")
    output = {"conversation_id": conversation.id}
    if conversation.status != "open":
        return Done("The conversation is closed.", given, output, run_fields=output, code="closed")
    snoozes.snooze(moment.change({}), moment.contact, conversation, until)
    return Done(done, given, output, run_fields=output)


KIND = Kind(
    entry=Entry("Snooze the conversation", "alarm-clock", "snooze", {"seconds": times.DAY_SECONDS}),
    words=lambda step, names: Words(f"Snooze the conversation {times.in_words(step, 'for ')}"),
    description=(
        "Snoozes the conversation: it stays open and wakes at the time, or when the contact writes. Does nothing if the"
        " conversation is closed, if there is none, or if the time has passed."
    ),
    fields={
        "seconds": {
            "type": "integer",
            "minimum": 1,
            "maximum": snoozes.MOST_DAYS * 24 * 60 * 60,
            "description": f"For how long; {snoozes.MOST_DAYS} days at most.",
        },
        "until": times.UNTIL,
    },
    templates=("until",),
    check=times.check,
    talks=True,
    begin=begin,
    example={"seconds": 7200},
)

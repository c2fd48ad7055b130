"""`close_conversation`: closes the run's conversation; goes on if the contact has none."""

from __future__ import annotations

from app.domain.automations.steps.base import Done, Entry, Kind, Moment, Outcome, Words
from app.domain.conversations import conversations


def begin(moment: Moment) -> Outcome:
    """Closes the conversation. This releases runs that a member's message holds."""
    if moment.is_simulated:
        return Done("The conversation was closed.")
    conversation = conversations.of_run(moment.unit, moment.run)
    if conversation is None:
        return Done("The contact has no conversation.", code="no_channel")
    conversations.close(moment.change({}), moment.contact, conversation)
    output = {"conversation_id": conversation.id}
    return Done("The conversation was closed.", output=output, run_fields=output)


KIND = Kind(
    entry=Entry("Close the conversation", "circle-check", "close"),
    words=lambda step, names: Words("Close the conversation"),
    description="Closes the conversation. Does nothing if it is closed, or if there is none.",
    fields={},
    talks=True,
    begin=begin,
    example={},
)

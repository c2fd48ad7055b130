"""`assign_conversation`: assigns the run's conversation to a member, or removes its assignee."""

from __future__ import annotations

from app.domain.automations.steps.base import Done, Entry, Kind, Moment, Outcome, StepFailed, Words
from app.domain.conversations import conversations
from app.domain.triggers.plain_words import Given, Names, named
from app.errors import Invalid


def begin(moment: Moment) -> Outcome:
    """Assigns the conversation. Raises StepFailed `gone` if the workspace has no such member."""
    assignee_id = moment.step.fields["assignee_id"]
    given = {"assignee_id": assignee_id}
    done = f"The conversation was assigned to {assignee_id}." if assignee_id else "The assignee was removed."
    if moment.is_simulated:
        return Done(done, input=given)
    conversation = conversations.of_run(moment.unit, moment.run)
    if conversation is None:
        return Done("The contact has no conversation.", given, code="no_channel")
    try:
        by = {"type": "automation", "id": moment.run.automation_id}
        conversations.assign(moment.change({}), moment.contact, conversation, assignee_id, by)
    except Invalid as error:
        raise StepFailed("gone", f"The workspace has no member {assignee_id}.") from error
    output = {"conversation_id": conversation.id}
    return Done(done, input=given, output=output, run_fields=output)


def _words(step: Given, names: Names) -> Words:
    if step.get("assignee_id") is None:
        return Words("Remove the assignee")
    return Words(f"Assign to {named(names, step['assignee_id'], 'a member who is gone')}")


KIND = Kind(
    entry=Entry("Assign the conversation", "user-check", "assign", {"assignee_id": None}),
    words=_words,
    description="Assigns the conversation to a member, or removes its assignee. Does nothing if there is none.",
    fields={
        "assignee_id": {
            "type": ["string", "null"],
            "pattern": "^mem_[0-7][0-9a-hjkmnp-tv-z]{25}$",
            "x-form": "the identifier of a member, which begins with mem_",
            "description": "The member's identifier; null removes the assignee.",
        }
    },
    required=("assignee_id",),
    talks=True,
    begin=begin,
    example={"assignee_id": None},
)

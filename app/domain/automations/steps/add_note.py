"""`add_note`: adds a note to the run's conversation."""

from __future__ import annotations

from functools import partial

from app.domain.automations.steps import templated_values
from app.domain.automations.steps.base import Done, Entry, Outcome, StepContext, StepKind, Words
from app.domain.conversations import conversations, notes
from app.domain.triggers.plain_words import text_of


def begin(context: StepContext) -> Outcome:
    """Adds the note, even to a closed conversation. Raises StepFailed for an invalid text."""
    text = templated_values.read(context, "text", notes.read_text)
    given, done = {"text": text}, "The note was added."
    if context.is_simulated:
        return Done(done, given)
    conversation = conversations.of_run(context.unit, context.run)
    if conversation is None:
        return Done("The contact has no conversation.", given, code="no_channel")
    output = {"conversation_id": conversation.id}
    if not notes.has_room(context.unit, conversation):
        return Done(notes.TOO_MANY, given, output, run_fields=output, code="limit")
    note = notes.add(context.unit, conversation, text, {"type": "automation", "id": context.run.automation_id})
    return Done(done, given, {"note_id": note.id, **output}, run_fields=output)


KIND = StepKind(
    entry=Entry("Add a note", "sticky-note", "note"),
    words=lambda step, names: Words("Add a note", text_of(step)),
    description=(
        "Adds a note to the conversation, which members see and the contact never does. Does nothing if the"
        f" conversation has {notes.MOST_NOTES:,} notes, or if there is none."
    ),
    fields={"text": {"type": "string", "minLength": 1, "description": "The text of the note."}},
    required=("text",),
    templates=("text",),
    check=partial(templated_values.check, "text", notes.read_text),
    talks=True,
    begin=begin,
    example={"text": "Asked for a refund: {{ trigger.event.data.message.text }}"},
)

"""Steps that assign, close, label or snooze the run's conversation, or add a note, if it has one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from app.domain.automations.steps import base, templated_values, times
from app.domain.automations.steps.base import Done, Entry, Outcome, StepContext, StepFailed, StepKind, Words
from app.domain.conversations import conversation_changes, conversations, notes, snoozes
from app.domain.triggers.plain_words import Given, Names, named, quoted, text_of
from app.errors import Invalid
from app.lib import normalization
from app.lib.json import timestamp
from app.models.conversations import Conversation

# The JSON Schemas of a snooze's end, for steps and macros.
SNOOZE_FIELDS: Mapping[str, Mapping[str, Any]] = {
    "seconds": base.whole_number(
        1, snoozes.MOST_DAYS * times.DAY_SECONDS, f"For how long; {snoozes.MOST_DAYS} days at most."
    ),
    "until": times.UNTIL,
}
# Why a step cannot change the conversation: a sentence, and a code for a failure. None if it can.
Obstacle = tuple[str, str | None] | None


def _assign(context: StepContext) -> Outcome:
    """Assigns the conversation. Raises StepFailed `gone` if the workspace has no such member."""
    given = {"assignee_id": context.step.fields["assignee_id"]}
    member = given["assignee_id"]
    done = f"The conversation was assigned to {member}." if member else "The assignee was removed."
    try:
        return _change(context, {"do": "assign", **given}, given, done)
    except Invalid as error:
        raise StepFailed("gone", f"The workspace has no member {member}.") from error


def _close(context: StepContext) -> Outcome:
    """Closes the conversation. This releases runs that a member's message holds."""
    return _change(context, {"do": "close"}, None, "The conversation was closed.")


def _label(context: StepContext) -> Outcome:
    """Adds the label. Raises StepFailed for an invalid one."""
    label = templated_values.read(context, "label", normalization.label)

    def obstacle(conversation: Conversation) -> Obstacle:
        if conversation_changes.has_label(conversation, label):
            return f"The conversation had the label '{label}' already.", None
        if len(conversation.labels) >= conversation_changes.MOST_LABELS:
            return conversation_changes.TOO_MANY, "limit"
        return None

    done = f"The conversation was labelled '{label}'."
    return _change(context, {"do": "label", "label": label}, {"label": label}, done, obstacle)


def _snooze(context: StepContext) -> Outcome:
    """Snoozes the conversation if it is open. Raises StepFailed for an invalid or too distant time."""
    until = times.until(context)
    given = {"until": timestamp(until)}
    if until <= context.now:
        return Done(f"The time to wake, {given['until']}, had passed.", given)
    if not snoozes.is_possible(until, context.now):
        raise StepFailed("error", f"{given['until']} is more than {snoozes.MOST_DAYS} days away.")

    def obstacle(conversation: Conversation) -> Obstacle:
        return None if conversation.status == "open" else ("The conversation is closed.", "closed")

    action = {"do": "snooze", "until": until.isoformat()}
    return _change(context, action, given, f"The conversation is snoozed until {given['until']}.", obstacle)


def _note(context: StepContext) -> Outcome:
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


def _change(
    context: StepContext,
    action: Mapping[str, Any],
    given: Any,
    done: str,
    obstacle: Callable[[Conversation], Obstacle] = lambda conversation: None,
) -> Outcome:
    """Takes the action, one of `conversation_changes.ACTIONS`, in the run's conversation.

    Changes nothing in a simulation, without a conversation, or if `obstacle` returns a reason. `done`: the text of the
    log entry, `given`: its input. Raises what `conversation_changes.apply` raises.
    """
    if context.is_simulated:
        return Done(done, given)
    conversation = conversations.of_run(context.unit, context.run)
    if conversation is None:
        return Done("The contact has no conversation.", given, code="no_channel")
    output = {"conversation_id": conversation.id}
    if (found := obstacle(conversation)) is not None:
        return Done(found[0], given, output, run_fields=output, code=found[1])
    wanted = conversation_changes.ACTIONS[action["do"]](conversation, action)
    by = {"type": "automation", "id": context.run.automation_id}
    conversation_changes.apply(context.change({}), context.contact, conversation, wanted, by)
    return Done(done, given, output, run_fields=output)


def _assign_words(step: Given, names: Names) -> Words:
    if step.get("assignee_id") is None:
        return Words("Remove the assignee")
    return Words(f"Assign to {named(names, step['assignee_id'], 'a member who is gone')}")


ASSIGN = StepKind(
    entry=Entry("Assign the conversation", "user-check", "assign", {"assignee_id": None}),
    words=_assign_words,
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
    begin=_assign,
    example={"assignee_id": None},
)
CLOSE = StepKind(
    entry=Entry("Close the conversation", "circle-check", "close"),
    words=lambda step, names: Words("Close the conversation"),
    description="Closes the conversation. Does nothing if it is closed, or if there is none.",
    fields={},
    talks=True,
    begin=_close,
)
LABEL = StepKind(
    entry=Entry("Label the conversation", "bookmark", "label"),
    words=lambda step, names: Words(f"Add the label {quoted(step['label'])}"),
    description=(
        "Adds a label to the conversation. Does nothing if the conversation has it, has 20 labels, or if there is none."
    ),
    fields={"label": {"type": "string", "minLength": 1, "maxLength": 4096, "description": "The label; a template."}},
    required=("label",),
    templates=("label",),
    check=partial(templated_values.check, "label", normalization.label),
    talks=True,
    begin=_label,
    example={"label": "refund"},
)
NOTE = StepKind(
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
    begin=_note,
    example={"text": "Asked for a refund: {{ trigger.event.data.message.text }}"},
)
SNOOZE = StepKind(
    entry=Entry("Snooze the conversation", "alarm-clock", "snooze", {"seconds": times.DAY_SECONDS}),
    words=lambda step, names: Words(f"Snooze the conversation {times.in_words(step, 'for ')}"),
    description=(
        "Snoozes the conversation: it stays open and wakes at the time, or when the contact writes. Does nothing if the"
        " conversation is closed, if there is none, or if the time has passed."
    ),
    fields=SNOOZE_FIELDS,
    templates=("until",),
    check=times.check,
    talks=True,
    begin=_snooze,
    example={"seconds": 7200},
)

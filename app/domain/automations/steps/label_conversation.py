"""`label_conversation`: adds a label to the run's conversation."""

from __future__ import annotations

from functools import partial

from app.domain.automations.steps import templated_values
from app.domain.automations.steps.base import Done, Entry, Kind, Moment, Outcome, Words
from app.domain.conversations import conversation_labels, conversations
from app.domain.triggers.plain_words import quoted
from app.lib import normalization


def begin(moment: Moment) -> Outcome:
    """Adds the label. Raises StepFailed for an invalid one."""
    label = templated_values.read(moment, "label", normalization.label)
    given, done = {"label": label}, f"The conversation was labelled '{label}'."
    if moment.is_simulated:
        return Done(done, given)
    conversation = conversations.of_run(moment.unit, moment.run)
    if conversation is None:
        return Done("The contact has no conversation.", given, code="no_channel")
    output = {"conversation_id": conversation.id}
    if conversation_labels.has(conversation, label):
        return Done(f"The conversation had the label '{label}' already.", given, output, run_fields=output)
    if len(conversation.labels) >= conversation_labels.MOST_LABELS:
        return Done(conversation_labels.TOO_MANY, given, output, run_fields=output, code="limit")
    labels = [*conversation.labels, label]
    conversation_labels.replace(moment.change({}), moment.contact, conversation, labels)
    return Done(done, given, output, run_fields=output)


KIND = Kind(
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
    begin=begin,
    example={"label": "refund"},
)

"""`branch`: continues with one of two lists of steps."""

from __future__ import annotations

from app.domain.automations.steps.base import Done, Entry, Outcome, StepContext, StepKind, Words
from app.domain.triggers.plain_words import LONGEST_TEXT, condition, cut


def begin(context: StepContext) -> Outcome:
    """Continues with `then` if the condition holds, otherwise with `else`."""
    condition = context.step.fields["if"]
    if context.holds(condition):
        return Done("The condition holds.", condition, True, to="then")
    return Done("The condition does not hold.", condition, False, to="else")


KIND = StepKind(
    entry=Entry("Decide by a condition", "split"),
    words=lambda step, names: Words("Decide", cut(f"If {condition(step['if'])}", 2 * LONGEST_TEXT)),
    way=lambda step, key: ("Yes", f"If {condition(step['if'])}") if key == "then" else ("Otherwise", "Otherwise"),
    description="Continues with the steps of `then` if the condition holds, otherwise with those of `else`. After "
    "either list comes the step after the branch.",
    fields={
        "if": {"description": "The condition."},
        "then": {"description": "The steps to take if it holds."},
        "else": {"description": "The steps to take if it does not hold."},
    },
    required=("if",),
    conditions=("if",),
    lists=("then", "else"),
    begin=begin,
    example={
        "if": {"field": "contact.tags", "is": "contains", "value": "vip"},
        "then": [{"id": "greet_vip", "kind": "send_message", "text": "Welcome back!"}],
        "else": [],
    },
)

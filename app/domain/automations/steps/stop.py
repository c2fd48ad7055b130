"""`stop`: ends the run, with a result for the run that started it."""

from __future__ import annotations

from app.domain.automations.steps import templated_values
from app.domain.automations.steps.base import Entry, Outcome, StepContext, StepKind, Stop, Words
from app.domain.triggers.plain_words import LONGEST_TEXT, Given, Names, cut

MOST_MEMBERS = 64
MOST_BYTES = 32 * 1024
_TOO_LONG = f"The result is longer than {MOST_BYTES // 1024} KiB."


def begin(context: StepContext) -> Outcome:
    """Completes the run. Raises StepFailed `limit` if the result is too long."""
    result = templated_values.kept(context, context.step.fields.get("result"), MOST_BYTES, _TOO_LONG)
    return Stop("The run was stopped.", result)


def _words(step: Given, names: Names) -> Words:
    result = ", ".join(map(str, step.get("result") or ()))
    return Words("Stop", cut(f"with the result {result}", LONGEST_TEXT) if result else "")


KIND = StepKind(
    entry=Entry("Stop", "octagon-x"),
    words=_words,
    description="Ends the run, as completed, wherever in the definition it stands.",
    fields={
        "result": {
            "type": "object",
            "maxProperties": MOST_MEMBERS,
            "description": "What a run that started this one and waits for it gets; 32 KiB at most.",
        }
    },
    templates=("result",),
    begin=begin,
    example={"result": {"plan": "{{ contact.custom_fields.plan }}"}},
)

"""`set_variable`: stores a value in the run under a name."""

from __future__ import annotations

from app.domain.automations.steps import templated_values
from app.domain.automations.steps.base import NAME, Done, Entry, Outcome, StepContext, StepFailed, StepKind, Words
from app.domain.triggers.plain_words import quoted, shown
from app.lib import json

MOST_VARIABLES = 64
MOST_BYTES = 32 * 1024
_TOO_LONG = f"The variables of the run are longer than {MOST_BYTES // 1024} KiB."


def begin(context: StepContext) -> Outcome:
    """Sets the variable. Raises StepFailed `limit` for too many, or too long, variables of the run."""
    name = context.step.fields["name"]
    value = templated_values.kept(context, context.step.fields["value"], MOST_BYTES, _TOO_LONG)
    own = {**context.run.own_variables, name: value}
    if len(own) > MOST_VARIABLES:
        raise StepFailed("limit", f"A run has at most {MOST_VARIABLES} variables of its own.")
    if len(json.dumps(own)) > MOST_BYTES:
        raise StepFailed("limit", _TOO_LONG)
    return Done(f"The variable '{name}' was set.", {"name": name, "value": value}, run_fields={"own_variables": own})


KIND = StepKind(
    entry=Entry("Set a variable", "variable"),
    words=lambda step, names: Words(f"Set the variable {quoted(step['name'])}", f"to {shown(step['value'])}"),
    description="Sets a variable of the run, which `run.variables.<name>` reads; until then it has the value that the"
    f" run was started with, if any. A run has at most {MOST_VARIABLES}, of {MOST_BYTES // 1024} KiB in all.",
    fields={
        "name": NAME,
        "value": {"description": "A template gives text."},
    },
    required=("name", "value"),
    templates=("value",),
    begin=begin,
    example={"name": "greeting", "value": "Hello {{ contact.first_name }}"},
)

"""`start_automation`: starts a run of an automation for the same contact."""

from __future__ import annotations

from typing import cast

from app import bounds
from app.domain.automations.steps import templated_values
from app.domain.automations.steps.base import Done, Kind, Moment, Outcome, StepFailed
from app.domain.automations.steps.templated_values import TooLong
from app.domain.triggers import run_states
from app.domain.triggers.run_states import MOST_DEPTH, Reentry, Start
from app.lib import json
from app.models.automations import Automation

MOST_VARIABLES = 64
MOST_BYTES = 32 * 1024


def begin(moment: Moment) -> Outcome:
    """Begins the run. Raises StepFailed if the automation is not published, or the chain of automations too long."""
    automation_id = moment.step.fields["automation_id"]
    automation = _find(moment, automation_id)
    if automation is None:
        raise StepFailed("gone", f"There is no automation {automation_id} in this workspace.")
    if automation.version is None:
        raise StepFailed("gone", f"The automation '{automation.name}' is not published.")
    given = {"automation_id": automation_id, "variables": _variables(moment)}
    if moment.run.depth >= MOST_DEPTH:
        raise StepFailed("limit", f"Automations have started each other {MOST_DEPTH} times in a row.")
    if moment.is_simulated:
        return Done(f"A simulation does not start '{automation.name}'.", given)
    start = Start(
        workspace_id=moment.run.workspace_id,
        automation_id=automation_id,
        version=automation.version,
        contact_id=moment.contact.id,
        trace_id=moment.run.trace_id,
        variables=given["variables"],
        parent_id=moment.run.id,
        depth=moment.run.depth + 1,
    )
    if run_states.is_overgrown(moment.unit, start):
        raise StepFailed("limit", _OVERGROWN.format(bounds.RUNS_OF_CHAIN.most))
    if other_id := run_states.keeps_out(moment.unit, start, cast(Reentry, automation.reentry or "every")):
        run_states.count(moment.unit, start, "refused:reentry")
        text = f"The contact has entered '{automation.name}' already, with run {other_id}."
        return Done(text, given, code="reentry")
    output = {"run_id": run_states.begin(moment.unit, start).id}
    return Done(f"'{automation.name}' was started.", given, output, saved={moment.step.id: output})


def _find(moment: Moment, automation_id: str) -> Automation | None:
    of_id = Automation.in_workspace(moment.run.workspace_id).where(Automation.id == automation_id)
    note = ("started automation", moment.run.workspace_id, automation_id)
    found: Automation | None = moment.unit.noted(note, of_id.first)
    return found


def _variables(moment: Moment) -> dict[str, object]:
    try:
        rendered: dict[str, object] = templated_values.rendered(
            moment, moment.step.fields.get("variables", {}), MOST_BYTES
        )
    except TooLong as error:
        raise StepFailed("limit", _TOO_LONG) from error
    if len(json.dumps(rendered)) > MOST_BYTES:
        raise StepFailed("limit", _TOO_LONG)
    return rendered


_OVERGROWN = "Automations have started {:,} runs of the contact from one cause: the most that they may."
_TOO_LONG = f"The variables are longer than {MOST_BYTES // 1024} KiB."

KIND = Kind(
    description=(
        "Starts another automation for the same contact; `steps.<id>.run_id` is its run. The run continues at once. It"
        f" fails if the automation is not published, or if {MOST_DEPTH} automations have started each other in a row."
        " If `reentry` keeps the contact out, nothing is started."
    ),
    fields={
        "automation_id": {
            "type": "string",
            "pattern": "^aut_[0-9a-z]{26}$",
            "x-form": "the identifier of an automation, which begins with aut_",
        },
        "variables": {
            "type": "object",
            "maxProperties": MOST_VARIABLES,
            "description": "Strings in it, at any depth, are templates. At most 32 KiB when rendered.",
        },
    },
    required=("automation_id",),
    templates=("variables",),
    results=("run_id",),
    begin=begin,
    example={
        "kind": "start_automation",
        "automation_id": "aut_01m8362f00ehpa3xypmbhkxwpq",
        "variables": {"order": "{{ trigger.variables.order }}"},
    },
)

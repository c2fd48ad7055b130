"""`start_automation`: starts a run of another automation for the same contact."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from app import bounds
from app.domain.automations.steps import templated_values
from app.domain.automations.steps.base import (
    NAME,
    Done,
    Entry,
    Outcome,
    StepContext,
    StepFailed,
    StepKind,
    Wait,
    Words,
    saved,
)
from app.domain.triggers import run_states
from app.domain.triggers.plain_words import Given, Names, named
from app.domain.triggers.run_states import MOST_DEPTH, Reentry, Start
from app.errors import Fault
from app.models.automations import Automation

MOST_VARIABLES = 64
MOST_BYTES = 32 * 1024


def begin(context: StepContext) -> Outcome:
    """Starts the run. With `wait`, waits until it has ended.

    If `reentry` keeps the contact out, continues without it. Raises StepFailed if the automation is not published, or
    the chain is too long.
    """
    automation_id = context.step.fields["automation_id"]
    of_id = Automation.in_workspace(context.run.workspace_id).where(Automation.id == automation_id)
    note = ("started automation", context.run.workspace_id, automation_id)
    automation: Automation | None = context.unit.noted(note, of_id.first)
    if automation is None:
        raise StepFailed("gone", f"There is no automation {automation_id} in this workspace.")
    if automation.version is None:
        raise StepFailed("gone", f"The automation '{automation.name}' is not published.")
    variables = templated_values.kept(context, context.step.fields.get("variables", {}), MOST_BYTES, _TOO_LONG)
    given = {"automation_id": automation_id, "variables": variables}
    if context.run.depth >= MOST_DEPTH:
        raise StepFailed("limit", f"Automations have started each other {MOST_DEPTH} times in a row.")
    if context.is_simulated:
        return Done(f"A simulation does not start '{automation.name}'.", given)
    start = Start(
        workspace_id=context.run.workspace_id,
        automation_id=automation_id,
        version=automation.version,
        contact_id=context.contact.id,
        trace_id=context.run.trace_id,
        variables=variables,
        parent_id=context.run.id,
        is_awaited=context.step.fields.get("wait", False),
        depth=context.run.depth + 1,
        goal=automation.goal,
    )
    if run_states.is_overgrown(context.unit, start):
        raise StepFailed("limit", _OVERGROWN.format(bounds.RUNS_OF_CHAIN.most))
    if other_id := run_states.keeps_out(context.unit, start, cast(Reentry, automation.reentry or "every")):
        run_states.count_refused(context.unit, start, "reentry")
        text = f"The contact has entered '{automation.name}' already, with run {other_id}."
        return Done(text, given, code="reentry")
    started: dict[str, Any] = {"run_id": run_states.begin(context.unit, start).id}
    if start.is_awaited:
        started["cancel_together"] = context.step.fields.get("cancel_together", False)
        text = f"The run waits until '{automation.name}' has ended."
        return Wait("run", text, input=given, run_fields={"saved": {**context.run.saved, context.step.id: started}})
    return Done(f"'{automation.name}' was started.", given, started, saved={context.step.id: started})


def resume(context: StepContext) -> Outcome:
    """Continues with the other run's result."""
    ended = context.answer
    assert ended is not None
    code = None if ended["status"] == "completed" else ended["status"]
    text = f"The other run has {_ENDED[ended['status']]}."
    return Done(text, output=ended, saved=saved(context, ended, ended["result"]), code=code)


def check(step: Mapping[str, Any], pointer: str) -> Iterator[Fault]:
    """Yields faults of members that only make sense if the step waits."""
    if step.get("wait"):
        return
    if "save_as" in step:
        yield Fault(f"{pointer}/save_as", "Only a step that waits has a result to save. Give 'wait': true.")
    if step.get("cancel_together"):
        yield Fault(f"{pointer}/cancel_together", "Only a run that waits can take the other along. Give 'wait': true.")


_ENDED = {"completed": "completed", "failed": "failed", "cancelled": "been cancelled"}
_OVERGROWN = "Automations have started {:,} runs of the contact from one cause: the most that they may."
_TOO_LONG = f"The variables are longer than {MOST_BYTES // 1024} KiB."


def _words(step: Given, names: Names) -> Words:
    what = named(names, step["automation_id"], "an automation that is gone")
    return Words(f"Start {what}", "and wait until it has ended" if step.get("wait") else "")


KIND = StepKind(
    entry=Entry("Start an automation", "workflow", "start"),
    words=_words,
    description=(
        "Starts another automation for the same contact; `steps.<id>.run_id` is its run. The run continues at once, or"
        " with `wait` when the other has ended: `steps.<id>` then has its `status` and the `result` of its `stop`. It"
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
        "wait": {"type": "boolean", "description": "Waits until the other run has ended, in whatever way."},
        "cancel_together": {
            "type": "boolean",
            "description": "If this run is cancelled while it waits, so is the other.",
        },
        "save_as": NAME
        | {"description": "Also saves the result under this name, among `steps`; null if there is none."},
    },
    required=("automation_id",),
    templates=("variables",),
    results=("run_id", "status", "result"),
    check=check,
    begin=begin,
    resume=resume,
    example={
        "automation_id": "aut_01m8362f00ehpa3xypmbhkxwpq",
        "variables": {"order": "{{ trigger.variables.order }}"},
    },
)

"""Runs: one contact's path through an automation, as members and the API see and control it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marshmallow import fields, validate

from app.domain.automations.definitions import programs
from app.domain.triggers import run_endings, run_states
from app.domain.triggers.run_states import Start
from app.domain.work.changes import Change, Effect
from app.errors import AutomationNotPublished, Conflict, Fault, Invalid, NotFound
from app.lib import ids
from app.lib.schemas import ResponseBody, about, time
from app.models import sets
from app.models.automations import Automation
from app.models.contacts import Contact
from app.models.jobs import Job
from app.models.runs import Run, RunStep
from app.models.sets import Key

LONGEST_LOG = 1_000  # the most log entries that the API shows
# The kinds of writes whose resource is the run that they start.
_BEGINNINGS = ("automations.start", "runs.replay")


def needs(workspace_id: str, payload: Mapping[str, Any], _: str | None) -> list[Key]:
    """Returns the contact's key, which comes first: a run is locked only after its contact."""
    return [sets.key(Contact, workspace_id, "id", payload["contact_id"])]


def cancel(change: Change) -> Effect:
    """Cancels the run, unless it is cancelled. Raises NotFound, and Conflict for an ended run."""
    run = _locked(change, change.target)
    refuse_ended(run)
    if run.status != "cancelled":
        run_endings.finish(change.unit, run, "cancelled", automation_name=_automation(run).name, reason="request")
    return Effect("changed", "run", run.id)


def resume(change: Change) -> Effect:
    """Resumes a run that a member's message holds. Raises NotFound, and Conflict if none holds it."""
    run = _locked(change, change.target)
    if run.status != "held" or run.waits_for != "member":
        if run.reason == "pause":
            raise Conflict("This run is held because its automation is paused. Resume the automation.")
        raise Conflict(f"No member's message holds this run: it is {run.status}.")
    run_states.wake(change.unit, run, status="running", reason=None, is_released=True)
    return Effect("changed", "run", run.id)


def replay(change: Change) -> Effect:
    """Starts a copy of an ended run, with the same version, variables and event.

    With `from_step`, starts at that step, and with the run's saved results. Ignores `reentry`. Raises NotFound,
    Invalid, AutomationNotPublished, and Conflict if the run has not ended or its contact is gone.
    """
    run = _locked(change, change.payload["run_id"])
    if not run.is_finished:
        raise Conflict(f"This run is {run.status}. Only one that has ended can be replayed.")
    automation = _automation(run)
    if automation.version is None:
        raise AutomationNotPublished()
    if change.unit.get(Contact, run.workspace_id, "id", run.contact_id) is None:
        raise Conflict("The contact of this run has been deleted.")
    from_step = change.payload.get("from_step")
    check_step(run, from_step)
    begun = Start(
        run.workspace_id,
        run.automation_id,
        run.version,
        run.contact_id,
        change.cause.trace_id,
        run.variables,
        run.event,
        job_id=change.cause.job_id,
        parent_id=run.id,
        run_id=change.target,
        goal=automation.goal,
        step=from_step,
        **({} if from_step is None else {"saved": run.saved, "own_variables": run.own_variables}),
    )
    run_states.begin(change.unit, begun)
    return Effect("made", "run", change.target)


def refuse_ended(run: Run) -> None:
    """Raises Conflict if the run has ended, unless it was cancelled."""
    if run.status in ("completed", "failed"):
        raise Conflict(f"This run has {run.status} and cannot be cancelled.")


def check_step(run: Run, step: str | None) -> None:
    """Raises Invalid if the run's version has no such step. None means the first step."""
    if step is not None and step not in programs.program_of(run.automation_id, run.version).steps:
        raise Invalid(Fault("/from_step", f"Version {run.version} of this automation has no step '{step}'."))


def find(workspace_id: str, run_id: str) -> Run:
    """Returns the run; if its start is still queued, the run as it will begin. Raises NotFound."""
    # If a start takes effect between the first two lookups, the third finds the run.
    for look in (_begun, _accepted, _begun):
        if ids.is_id(run_id, "run") and (run := look(workspace_id, run_id)) is not None:
            return run
    raise NotFound()


class StepDetailSchema(ResponseBody):
    OPTIONAL = ("warnings",)

    input = fields.Raw(allow_none=True, metadata={"example": None})
    output = fields.Raw(allow_none=True, metadata={"example": None})
    code = fields.String(allow_none=True, metadata=about("Why it failed.", example=None))
    text = fields.String(metadata=about("What happened, for people.", example="Done."))
    warnings = fields.List(
        fields.String(),
        metadata=about(
            "What went on otherwise than it may have been meant: names in templates that printed nothing.",
            example=["'steps.call.body.code' printed nothing."],
        ),
    )


class LogEntrySchema(ResponseBody):
    number = fields.Integer(metadata={"example": 1})
    id = fields.String(metadata=about("The step in the definition.", example="mark"))
    kind = fields.String(metadata={"example": "add_tag"})
    status = fields.String(validate=validate.OneOf(["succeeded", "failed", "waiting"]))
    at = time("When it happened.")
    detail = fields.Nested(StepDetailSchema)


def represent_step(step: RunStep) -> dict[str, Any]:
    """Returns a run's log entry as in the API."""
    return LogEntrySchema.of(step, id=step.step)


def _locked(change: Change, run_id: str) -> Run:
    """Returns the run, locked after its contact. Raises NotFound, Busy."""
    unit, workspace_id = change.unit, change.workspace_id
    unit.get(Contact, workspace_id, "id", change.payload["contact_id"])
    run = unit.get(Run, workspace_id, "id", run_id)
    if run is None:
        raise NotFound()
    return run


def _automation(run: Run) -> Automation:
    """Returns the run's automation, without its definition. Raises NotFound."""
    columns = (Automation.id, Automation.name, Automation.version, Automation.goal)
    found = Automation.select(*columns).where(Automation.id == run.automation_id).first()
    if found is None:
        raise NotFound("The automation of this run has been deleted.")
    return found  # type: ignore[no-any-return]


def _begun(workspace_id: str, run_id: str) -> Run | None:
    found: Run | None = Run.in_workspace(workspace_id).where(Run.id == run_id).first()
    return found


def _accepted(workspace_id: str, run_id: str) -> Run | None:
    """Returns the run that a queued write will start; None if there is no such write."""
    is_queued = (Job.resource_id == run_id) & Job.kind.in_(_BEGINNINGS) & Job.due_at.is_null(False)
    job = Job.in_workspace(workspace_id).where(is_queued).first()
    if job is None:
        return None
    like = _begun(workspace_id, job.payload["run_id"]) if job.kind == "runs.replay" else None
    return Run(
        id=run_id,
        workspace_id=workspace_id,
        automation_id=job.payload["automation_id"],
        version=like.version if like else None,
        contact_id=job.payload["contact_id"],
        variables=like.variables if like else job.payload.get("variables", {}),
        parent_id=like.id if like else None,
        job_id=job.id,
        trace_id=job.trace_id,
        created_at=ids.time_of(run_id),
    )

"""Runs of automations: their logs, and control over each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from flask import Blueprint, Response, flash, render_template, request
from werkzeug.wrappers import Response as AnyResponse

from app.domain.automations import runs
from app.domain.automations.definitions import programs
from app.domain.people import message_access
from app.errors import Conflict, Invalid, NotFound
from app.lib import ids
from app.models.automations import Automation
from app.models.contacts import Contact
from app.models.runs import FAILURE_CODES, STATUSES, Run, RunStep
from app.web import filters, writes
from app.web.access import page, workspace_id
from app.web.contacts import contact_names
from app.web.formats import MOST_COUNTED
from app.web.forms import errors_of
from app.web.lists import MOST_EXPORTED, address, columns, file_of, sliced, wanted_format
from app.web.redirects import to

blueprint = Blueprint("run_pages", __name__, url_prefix="/workspaces/<workspace>/dashboard/runs")

READERS = {
    "automation_id": filters.identifier("aut"),
    "contact_id": filters.identifier("con"),
    "status": filters.one_of(STATUSES),
    "failure": filters.one_of(FAILURE_CODES),
}
_CHOICES = {
    "status": filters.choices("Any state", STATUSES),
    "failure": filters.choices("Any cause", FAILURE_CODES),
}
_LABELS = {
    "automation_id": "Automation",
    "contact_id": "Contact",
    "status": "State",
    "failure": "Failed because of",
}
MOST_STEPS = 200  # of a run's log
MOST_AUTOMATIONS = 50  # that a select offers


@blueprint.get("")
@page("dashboard.see")
def index() -> str | Response:
    """The runs that match the filters, newest first."""
    chosen = filters.read(READERS)
    if wanted_format():
        return file_of(_exported(Run.newest(workspace_id(), chosen.values, None, MOST_EXPORTED)), "runs")
    listed = sliced(lambda after, limit: Run.newest(workspace_id(), chosen.values, after, limit))
    automations = _automation_choices(chosen.given.get("automation_id"))
    return render_template(
        "runs/index.html",
        page=listed,
        chosen=chosen,
        count=Run.counted(workspace_id(), chosen.values, MOST_COUNTED),
        automations=automations,
        chips=chosen.chips(_LABELS, {**_CHOICES, "automation_id": automations}),
        names=_automation_names(listed.rows),
        contacts=contact_names.names_of(workspace_id(), {run.contact_id for run in listed.rows}),
        choices=_CHOICES,
        address=address,
    )


@blueprint.get("/<run_id>")
@page(message_access.SEE)
def show(run_id: str) -> str:
    """A run: why it began, where it is, and its log."""
    return _page(run_id, {})


@blueprint.post("/<run_id>/cancel")
@page("runs.manage")
def cancel(run_id: str) -> AnyResponse:
    """Cancels the run."""
    return _change(run_id, "runs.cancel", "The run is cancelled.")


@blueprint.post("/<run_id>/resume")
@page("runs.manage")
def resume(run_id: str) -> AnyResponse:
    """Resumes a run that a member's message holds."""
    return _change(run_id, "runs.resume", "The run continues.")


@blueprint.post("/<run_id>/replay")
@page("runs.manage")
def replay(run_id: str) -> AnyResponse:
    """Begins a new run like this one, at its first step or at the one that is given, and goes to it."""
    run = runs.find(workspace_id(), run_id)
    payload = {"run_id": run.id, "contact_id": run.contact_id, "automation_id": run.automation_id}
    if from_step := request.form.get("from_step", ""):
        payload["from_step"] = from_step
    try:
        job = writes.submit("runs.replay", payload, ids.new("run"), partial(runs.check_step, run, from_step or None))
    except Invalid as invalid:
        return Response(_page(run.id, errors_of(invalid)), 422)
    except Conflict as conflict:
        flash(conflict.detail, "error")
        return to("run_pages.show", run_id=run.id)
    if job.is_finished:
        flash("A new run has begun.", "good")
    return to("run_pages.show", run_id=job.resource_id or run.id)


def _change(run_id: str, kind: str, done: str) -> AnyResponse:
    run = runs.find(workspace_id(), run_id)
    writes.tell(done, kind, {"contact_id": run.contact_id}, run.id)
    return to("run_pages.show", run_id=run.id)


def _page(run_id: str, errors: Mapping[str, str]) -> str:
    run = runs.find(workspace_id(), run_id)
    log = RunStep.latest(run, MOST_STEPS + 1)
    automation = Automation.get_or_none(Automation.id == run.automation_id)
    contact = Contact.one(workspace_id(), run.contact_id)
    return render_template(
        "runs/show.html",
        run=run,
        log=log[-MOST_STEPS:],
        has_more=len(log) > MOST_STEPS,
        automation=automation,
        contact_name=contact_names.name_of(contact) if contact else None,
        steps=_steps_to_replay(run, automation, contact),
        errors=errors,
        wanted_step=request.form.get("from_step", ""),
    )


def _steps_to_replay(run: Run, automation: Automation | None, contact: Contact | None) -> list[tuple[str, str]] | None:
    """The steps that a replay of the run can begin with; None if it cannot be replayed at all."""
    if not run.is_finished or run.version is None or contact is None:
        return None
    if automation is None or automation.version is None:
        return None
    try:
        steps = programs.program_of(run.automation_id, run.version).steps
    except NotFound:
        return None
    return [(step.id, f"{step.id} ({step.kind.replace('_', ' ')})") for step in reversed([*steps.values()])]


def _automation_choices(chosen: str | None) -> list[tuple[str, str]] | None:
    """Values and labels for a select, with the one that is chosen; None if there are more than a select can offer."""
    columns = (Automation.id, Automation.name)
    found = Automation.in_workspace(workspace_id()).select(*columns).order_by(Automation.id.desc())
    named = [(automation.id, automation.name) for automation in found.limit(MOST_AUTOMATIONS + 1)]
    if len(named) > MOST_AUTOMATIONS:
        return None
    deleted = [(chosen, chosen)] if chosen and chosen not in dict(named) else []
    return [("", "All automations"), *named, *deleted]


def _automation_names(listed: Sequence[Run]) -> dict[str, str]:
    automation_ids = {run.automation_id for run in listed}
    named = Automation.in_workspace(workspace_id()).select(Automation.id, Automation.name)
    return dict(named.where(Automation.id.in_(list(automation_ids))).tuples()) if automation_ids else {}


def _exported(listed: Sequence[Run]) -> list[dict[str, Any]]:
    names = _automation_names(listed)
    return [
        {
            **columns(run, "id", "automation_id"),
            "automation_name": names.get(run.automation_id),
            **columns(run, "version", "contact_id", "status", "reason"),
            "failure_code": (run.failure or {}).get("code"),
            "failure_detail": (run.failure or {}).get("detail"),
            **columns(run, "created_at", "started_at", "finished_at"),
        }
        for run in listed
    ]

"""Runs of automations: the list, each run's log, and the forms that cancel, resume or replay it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from flask import Blueprint, Response, render_template, request
from werkzeug.wrappers import Response as AnyResponse

from app.domain.automations import automations, runs
from app.domain.automations.definitions import programs
from app.domain.contacts import contact_names
from app.domain.people import message_access
from app.errors import Conflict, Invalid, NotFound
from app.lib import ids
from app.models.automations import Automation
from app.models.contacts import Contact
from app.models.runs import AT_STEP, FAILURE_CODES, STATUSES, Run, RunStep
from app.web import filters, periods, writes
from app.web.access import page, workspace_id
from app.web.automations import layouts, mentions, run_paths, showings
from app.web.automations.layouts import Picture
from app.web.automations.showings import FoldedSteps, Showing
from app.web.filters import Filter, Filters
from app.web.formats import MOST_COUNTED
from app.web.forms import errors_of
from app.web.lists import MOST_EXPORTED, columns, file_of, sliced, wanted_format
from app.web.redirects import to

blueprint = Blueprint("run_pages", __name__, url_prefix="/workspaces/<workspace>/dashboard/runs")

FILTERS = {
    "automation_id": Filter("Automation", filters.identifier("aut")),
    "contact_id": Filter("Contact", filters.identifier("con")),
    "status": filters.select("State", "Any state", STATUSES),
    "failure": filters.select("Failed because of", "Any cause", FAILURE_CODES),
    "version": Filter("Version", filters.version),
    "step": Filter("Step", filters.step),
    "at": Filter("Which", filters.one_of(AT_STEP), [("waiting", "wait now"), ("failed", "failed")]),
    **periods.FILTERS,
}
# With all four of these filters, the list shows the runs at a step. Only a range of time may be added.
_OF_STEP = ("automation_id", "version", "step", "at")
_OTHERS = ("automation_id", "contact_id", "status", "failure")
_SENT = "{} would be sent again. Tick this if that is meant, or choose a later step."
_LEFT_OUT = "This does not go with the other filters. It is left out."
MOST_STEPS = 200  # the most entries of a run's log that are shown
MOST_AUTOMATIONS = 50  # the most automations that a select offers


@blueprint.get("")
@page("dashboard.see")
def index() -> str | Response:
    """Lists the runs that match the filters, newest first, as a page or as a file."""
    chosen = _chosen()
    newest = partial(Run.newest, workspace_id(), chosen.values)
    fetch = periods.ranged(newest, chosen.values, partial(ids.bound, "run"))
    if wanted_format():
        return file_of(lambda: _exported(fetch(None, MOST_EXPORTED)), "runs")
    listed = sliced(fetch)
    automation_choices = _automation_choices(chosen.given.get("automation_id"))
    return render_template(
        "runs/index.html",
        page=listed,
        **chosen.shown(automation_id=automation_choices),
        count=Run.counted(workspace_id(), chosen.values, MOST_COUNTED),
        automations=automation_choices,
        names=_automation_names(listed.rows),
        contacts=contact_names.names_of(workspace_id(), {run.contact_id for run in listed.rows}),
        presets=periods.presets(),
    )


@blueprint.get("/<run_id>")
@page(message_access.SEE)
def show(run_id: str) -> str:
    """Shows a run: why it began, where it is, and its log."""
    return _page(run_id, {})


@blueprint.post("/<run_id>/cancel")
@page("runs.manage")
def cancel(run_id: str) -> AnyResponse:
    """Cancels the run, and redirects to it."""
    return _change(run_id, "runs.cancel", "The run is cancelled.")


@blueprint.post("/<run_id>/resume")
@page("runs.manage")
def resume(run_id: str) -> AnyResponse:
    """Resumes a run that a member's message has suspended, and redirects to it."""
    return _change(run_id, "runs.resume", "The run continues.")


@blueprint.post("/<run_id>/replay")
@page("runs.manage")
def replay(run_id: str) -> AnyResponse:
    """Starts a copy of this run at its first step or at `from_step`, and redirects to the copy.

    Shows this run again if messages would be sent again, to ask for confirmation, or if `from_step` is invalid.
    Redirects to this run after a Conflict.
    """
    run = runs.find(workspace_id(), run_id)
    payload = {"run_id": run.id, "contact_id": run.contact_id, "automation_id": run.automation_id}
    if from_step := request.form.get("from_step", ""):
        payload["from_step"] = from_step
    sent = run_paths.sent_again(RunStep.latest(run, runs.LONGEST_LOG), from_step or None)
    if sent and "again" not in request.form:
        messages = "1 message" if sent == 1 else f"{sent:,} messages"
        return Response(_page(run.id, {"again": _SENT.format(messages)}), 422)
    try:
        job = writes.submit("runs.replay", payload, ids.new("run"), partial(runs.check_step, run, from_step or None))
    except Invalid as invalid:
        return Response(_page(run.id, errors_of(invalid)), 422)
    except Conflict as conflict:
        return to("run_pages.show", conflict.detail, "error", run_id=run.id)
    return to("run_pages.show", "A new run has begun." if job.is_finished else None, run_id=job.resource_id or run.id)


def _chosen() -> Filters:
    """Reads the filters. A complete set of step filters excludes all others except times."""
    chosen = filters.read(FILTERS)
    wanted = {*(_OF_STEP if chosen.values.keys() >= set(_OF_STEP) else _OTHERS), *periods.FILTERS}
    left_out = {name: _LEFT_OUT for name in chosen.values if name not in wanted}
    values = {name: value for name, value in chosen.values.items() if name in wanted}
    return replace(chosen, values=values, errors={**chosen.errors, **left_out})


def _change(run_id: str, kind: str, done: str) -> AnyResponse:
    run = runs.find(workspace_id(), run_id)
    writes.tell(done, kind, {"contact_id": run.contact_id}, run.id)
    return to("run_pages.show", run_id=run.id)


def _page(run_id: str, errors: Mapping[str, str]) -> str:
    run = runs.find(workspace_id(), run_id)
    log = RunStep.latest(run, MOST_STEPS + 1)
    automation = Automation.get_or_none(Automation.id == run.automation_id)
    drawn, showing = _drawn(run, automation, log)
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
        wanted_step=request.form.get("from_step") or request.args.get("from") or (run.failure or {}).get("step") or "",
        sent=run_paths.sent_again(log, None),
        drawn=drawn,
        showing=showing,
        words={node.id: node.sentence for node in drawn.nodes} if drawn else {},
        view=showings.view(),
    )


def _drawn(run: Run, automation: Automation | None, log: Sequence[RunStep]) -> tuple[Picture | None, Showing]:
    """Returns the picture of the run's version, None if deleted, and the run's path in it."""
    version = automations.find_version(automation, run.version) if automation and run.version else None
    if version is None:
        return None, Showing()
    # The response to a form has no address of its own, so its links cannot fold or unfold steps.
    folded = showings.read_folding(version.definition) if request.method == "GET" else None
    names = mentions.names_of(workspace_id(), version.definition)
    is_folded = (folded or FoldedSteps()).is_folded
    drawn = layouts.draw(version.definition, names, is_folded=is_folded, has_marks=True)
    program = programs.program_of(run.automation_id, run.version)
    path = run_paths.path_of(run, log, program)
    return drawn, Showing(marks=run_paths.marks_of(run, log), path=path, folded=folded)


def _steps_to_replay(run: Run, automation: Automation | None, contact: Contact | None) -> list[tuple[str, str]] | None:
    """Returns (identifier, label) of the steps where a replay can start; None if it cannot."""
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
    columns = (Automation.id, Automation.name)
    found = Automation.in_workspace(workspace_id()).select(*columns).order_by(Automation.id.desc())
    named = list(found.limit(MOST_AUTOMATIONS + 1).tuples())
    return filters.offered(named, MOST_AUTOMATIONS, "All automations", chosen)


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

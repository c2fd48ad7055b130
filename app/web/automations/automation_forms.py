"""Forms of an automation: its name and reentry, cancelling its runs, and deleting it."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, render_template, request
from werkzeug.wrappers import Response

from app.domain.automations import automations, counts
from app.domain.automations.automations import REENTRY
from app.errors import Conflict, Fault, Invalid
from app.lib import ids
from app.models.automations import Automation
from app.models.runs import UNFINISHED
from app.web import filters, writes
from app.web.access import page, workspace_id
from app.web.automations.automation_pages import name_of
from app.web.forms import Answer, errors_of, status_of, typed
from app.web.redirects import to

blueprint = Blueprint("automation_forms", __name__, url_prefix="/workspaces/<workspace>/automations/<automation_id>")

_REENTRY_LABELS = {
    "": "As usual: by triggers after its run has ended, by hand every time",
    "every": "Every time",
    "after_finish": "After its run has ended",
    "once": "Only once",
}
_STATUSES = [("", "All that are under way"), *((each, each.capitalize()) for each in UNFINISHED)]


@blueprint.get("/settings")
@page("automations.see")
def show(automation_id: str) -> str:
    """Shows the automation's settings."""
    automation = Automation.find(workspace_id(), automation_id)
    return _settings(automation, {"name": automation.name, "reentry": automation.reentry or ""})


@blueprint.post("/settings")
@page("automations.manage")
def update(automation_id: str) -> Answer:
    """Changes the name and the reentry, and redirects to the form. If refused, shows it again."""
    automation = Automation.find(workspace_id(), automation_id)
    given = typed("name", "reentry")
    try:
        if given["reentry"] not in ("", *REENTRY):
            raise Invalid(Fault("/reentry", "Choose one of these."))
        body = {"name": name_of(given["name"]), "reentry": given["reentry"] or None}
        job = writes.submit("automations.update", body, automation.id)
    except (Invalid, Conflict) as error:
        return _settings(automation, given, errors_of(error)), status_of(error)
    return to("automation_forms.show", "It was changed." if job.is_finished else None, automation_id=automation.id)


@blueprint.get("/cancel-runs")
@page("automations.manage")
def ask_to_cancel(automation_id: str) -> str:
    """Shows how many runs match the filters, before they are cancelled."""
    automation = Automation.find(workspace_id(), automation_id)
    chosen = filters.read({"status": filters.one_of(UNFINISHED), "since": filters.time, "until": filters.time})
    return render_template(
        "automations/cancel.html",
        automation=automation,
        statuses=_STATUSES,
        chosen=chosen,
        count=automations.count_runs(workspace_id(), automation.id, chosen.values),
        most=automations.MOST_COUNTED,
    )


@blueprint.post("/cancel-runs")
@page("automations.manage")
def cancel_runs(automation_id: str) -> Response:
    """Cancels the unfinished runs that match the form's filters and have begun by now.

    Redirects to the automation. Raises Invalid for a filter that the form cannot send.
    """
    automation = Automation.find(workspace_id(), automation_id)
    body: dict[str, Any] = {"before": ids.new("run")}
    if status := request.form.get("status", ""):
        if status not in UNFINISHED:
            raise Invalid(Fault("/status", "There is no such state."))
        body["status"] = status
    for name in ("since", "until"):
        if text := request.form.get(name, ""):
            body[name] = _moment(name, text)
    writes.tell("The runs are cancelled.", "automations.cancel_runs", body, automation.id)
    return to("automation_pages.show", automation_id=automation.id)


@blueprint.post("/delete")
@page("automations.manage")
def delete(automation_id: str) -> Response:
    """Deletes the automation, cancels its runs, and redirects to the list."""
    automation = Automation.find(workspace_id(), automation_id)
    writes.tell(f"The automation {automation.name} was deleted.", "automations.delete", {}, automation.id)
    return to("automation_pages.index")


def _moment(name: str, text: str) -> str:
    try:
        return filters.time(text).isoformat()
    except ValueError as error:  # never cancel runs that were not counted on the page
        raise Invalid(Fault(f"/{name}", "This is no time.")) from error


def _settings(automation: Automation, given: dict[str, str], errors: dict[str, str] | None = None) -> str:
    runs = counts.runs_by_status([automation.id])[automation.id]
    return render_template(
        "automations/settings.html",
        automation=automation,
        given=given,
        errors=errors or {},
        reentry=list(_REENTRY_LABELS.items()),
        unfinished=sum(runs[status] for status in UNFINISHED),
    )

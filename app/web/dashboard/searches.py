"""The search box: says what a text is, and leads to its page."""

from __future__ import annotations

from flask import Blueprint, redirect, render_template, request
from werkzeug.wrappers import Response

from app.domain.insight import searches
from app.domain.insight.searches import Found
from app.web.access import page, staff, workspace_id

blueprint = Blueprint("searches", __name__)

# By type; after the path of the workspace.
_PAGES = {
    "delivery": "dashboard/deliveries/{id}",
    "event": "dashboard/events/{id}",
    "job": "dashboard/jobs/{id}",
    "run": "dashboard/runs/{id}",
    "contact": "contacts/{id}",
    "endpoint": "dashboard/endpoints/{id}",
    "automation": "dashboard/runs?automation_id={id}",
    "sweep": "dashboard/endpoints/{parent}",
    "replay": "dashboard/replays/{id}",
    "import": "contacts/imports/{id}",
    "conversation": "dashboard/contacts/{parent}",
    "message": "dashboard/contacts/{parent}",
    "note": "dashboard/contacts/{parent}",
    "sale": "dashboard/contacts/{parent}",
    "booking": "dashboard/contacts/{parent}",
    "invoice": "settings/billing/invoices/{id}",
    "token": "settings/developers/tokens",
    "member": "settings/members",
    "workspace": "dashboard",
}


def path_of(found: Found) -> str | None:
    """The path of the page that shows it; None if none does any more."""
    path = _PAGES[found.type]
    if found.parent is None and "{parent}" in path:
        return None
    return f"/workspaces/{found.workspace_id}/{path.format(id=found.id, parent=found.parent)}"


@blueprint.get("/workspaces/<workspace>/dashboard/search")
@page("dashboard.see")
def show() -> str | Response:
    """The resources of this workspace that the text names."""
    return _show(workspace_id())


@blueprint.get("/dashboard/search")
@staff
def show_all() -> str | Response:
    """The resources of all workspaces that the text names."""
    return _show(None)


def _show(id: str | None) -> str | Response:
    text = request.args.get("q", "")
    findings = searches.find(text, id)
    match findings.found:
        case [only] if only.matched == "id" and (path := path_of(only)):
            return redirect(path, 303)  # nothing else has this identifier
    return render_template("searches/results.html", findings=findings, path_of=path_of, is_all=id is None)

"""The search box: opens the page of an identifier, or lists what matches any other text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from flask import Blueprint, redirect, render_template, request
from werkzeug.wrappers import Response

from app.domain.contacts import contact_names
from app.domain.insight import searches, word_searches
from app.domain.insight.searches import Found
from app.domain.people import message_access
from app.models.workspaces import Workspace
from app.web.access import page, staff, viewer, workspace_id

blueprint = Blueprint("searches", __name__)

BEFORE_WORD, LONGEST_EXCERPT = 30, 200
# The path of each type's page, below the path of the workspace; None if there is no page.
_PAGES: Mapping[str, str | None] = {
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
    "conversation": "inbox/{id}",
    "message": "dashboard/contacts/{parent}",
    "note": "dashboard/contacts/{parent}",
    "sale": "dashboard/contacts/{parent}",
    "booking": "dashboard/contacts/{parent}",
    "invoice": "settings/billing/invoices/{id}",
    "token": "settings/developers/tokens",
    "member": "settings/members",
    "segment": "segments/{id}",
    "broadcast": "broadcasts/{id}",
    "refused request": "dashboard/refused-requests/{id}",
    "workspace": "dashboard",
}


def path_of(found: Found) -> str | None:
    """Returns the path of the page that shows the found resource; None if there is no such page."""
    path = _PAGES[found.type]
    if path is None or (found.parent is None and "{parent}" in path):
        return None
    return f"/workspaces/{found.workspace_id}/{path.format(id=found.id, parent=found.parent)}"


@blueprint.get("/workspaces/<workspace>/dashboard/search")
@page("dashboard.see")
def show() -> str | Response:
    """Lists this workspace's resources that match `q`, or redirects to the one that `q` identifies."""
    return _show(workspace_id())


@blueprint.get("/dashboard/search")
@staff
def show_all() -> str | Response:
    """Lists all workspaces' resources that match `q`, or redirects to the one that `q` identifies."""
    return _show(None)


def _show(id: str | None) -> str | Response:
    findings = searches.find(request.args.get("q", "").replace("\0", ""), id)
    match findings.found:
        case [only] if only.matched == "id" and (path := path_of(only)):
            return redirect(path, 303)  # no other resource has this identifier
    by_words = None
    if id is not None and not findings.found:
        by_words = word_searches.find(findings.text, id, with_messages=viewer().may(message_access.SEE))
    return render_template(
        "searches/results.html",
        findings=findings,
        workspaces=Workspace.newest(findings.text, None, searches.MOST_FOUND) if id is None and findings.text else [],
        by_words=by_words,
        names=contact_names.names_of(id, {each.contact_id for each in by_words.messages}) if id and by_words else {},
        name_of=contact_names.name_of,
        excerpt=partial(_excerpt, words=word_searches.words_of(findings.text)),
        path_of=path_of,
        is_all=id is None,
    )


def _excerpt(text: str, words: Sequence[str]) -> str:
    """Returns up to LONGEST_EXCERPT characters, from shortly before the first of the words."""
    positions = [position for word in words if (position := text.lower().find(word.lower())) >= 0]
    begins = max(min(positions, default=0) - BEFORE_WORD, 0)
    return ("… " if begins else "") + text[begins : begins + LONGEST_EXCERPT]

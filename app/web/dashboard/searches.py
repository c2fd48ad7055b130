"""The search box: says what a text is, and leads to its page."""

from __future__ import annotations

from flask import Blueprint, redirect, render_template, request
from werkzeug.wrappers import Response

from app.domain.insight import searches
from app.web.access import page, staff, workspace_id

blueprint = Blueprint("searches", __name__)


@blueprint.get("/workspaces/<workspace>/dashboard/search")
@page("dashboard.see")
def show() -> str | Response:
    """What the text is in this workspace."""
    return _show(workspace_id())


@blueprint.get("/dashboard/search")
@staff
def show_all() -> str | Response:
    """What the text is in any workspace."""
    return _show(None)


def _show(id: str | None) -> str | Response:
    text = request.args.get("q", "")
    findings = searches.find(text, id)
    match findings.found:
        case [only] if only.matched == "id" and only.path:
            return redirect(only.path, 303)  # nothing else has this identifier
    return render_template("searches/results.html", findings=findings, is_all=id is None)

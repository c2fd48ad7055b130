"""The first page after signing in: redirects to a workspace, or offers a choice."""

from __future__ import annotations

from flask import Blueprint, redirect, render_template, url_for
from werkzeug.wrappers import Response

from app.web.access import signed_in, viewer

blueprint = Blueprint("start", __name__)


@blueprint.get("/")
@signed_in
def show() -> Response:
    """Redirects to the viewer's only workspace, to all workspaces for staff, or to a choice."""
    signed = viewer().signed
    if signed.is_support:
        return redirect(url_for("overviews.show_all"), 303)
    if len(signed.memberships) == 1:
        return redirect(url_for("overviews.show", workspace=signed.memberships[0].workspace_id), 303)
    return redirect(url_for("start.choose"), 303)


@blueprint.get("/workspaces")
@signed_in
def choose() -> str:
    """Lists the viewer's workspaces."""
    return render_template("start.html", memberships=viewer().signed.memberships)

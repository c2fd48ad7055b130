"""The first page: where a signed-in person's work begins."""

from __future__ import annotations

from flask import Blueprint, redirect, render_template, url_for
from werkzeug.wrappers import Response

from app.web.access import signed_in, viewer

blueprint = Blueprint("start", __name__)


@blueprint.get("/")
@signed_in
def show() -> Response:
    """The only workspace's dashboard, all workspaces for staff, or a choice of workspaces."""
    signed = viewer().signed
    if signed.is_support:
        return redirect(url_for("overviews.show_all"), 303)
    if len(signed.memberships) == 1:
        return redirect(url_for("overviews.show", workspace=signed.memberships[0].workspace_id), 303)
    return redirect(url_for("start.choose"), 303)


@blueprint.get("/workspaces")
@signed_in
def choose() -> str:
    """The workspaces of which the viewer is a member."""
    return render_template("start.html", memberships=viewer().signed.memberships)

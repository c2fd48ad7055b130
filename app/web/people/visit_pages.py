"""Visits: support staff give a reason before they act in a workspace."""

from __future__ import annotations

from flask import Blueprint, flash, redirect, request
from werkzeug.wrappers import Response

from app.domain.people import support_accounts
from app.errors import Invalid
from app.web.access import page, viewer, workspace_id
from app.web.redirects import ours, to

blueprint = Blueprint("visit_pages", __name__, url_prefix="/workspaces/<workspace>/visit")


@blueprint.post("/begin")
@page("dashboard.see")
def begin() -> Response:
    """Begins a visit, and redirects back to the page, which shows an error if a field is invalid."""
    reason, ticket = request.form.get("reason", ""), request.form.get("ticket", "")
    try:
        support_accounts.begin_visit(viewer().signed.account_id, workspace_id(), reason, ticket)
    except Invalid as error:
        flash(error.detail, "error")
    back = ours(request.form.get("next", ""))
    return redirect(back, 303) if back else to("overviews.show")


@blueprint.post("/end")
@page("dashboard.see")
def end() -> Response:
    """Ends the visit, and redirects to the dashboard. Safe to repeat."""
    if (visit := viewer().visit) is not None:
        support_accounts.end_visit(visit.id)
    return to("overviews.show")

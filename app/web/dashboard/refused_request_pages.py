"""Refused requests: what the API refused, and why; the search box finds one by its request ID."""

from __future__ import annotations

from flask import Blueprint, render_template

from app.domain.insight.refused_requests import KEPT
from app.domain.work import audit
from app.models.refused_requests import RefusedRequest
from app.problems import PROBLEMS
from app.web.access import page, workspace_id

blueprint = Blueprint("refused_request_pages", __name__, url_prefix="/workspaces/<workspace>/dashboard")


@blueprint.get("/refused-requests/<refused_request_id>")
@page("dashboard.see")
def show(refused_request_id: str) -> str:
    """Shows a refused request: its method and path, its problem, and the remedy."""
    refused = RefusedRequest.find(workspace_id(), refused_request_id)
    return render_template(
        "refused_requests/show.html",
        refused=refused,
        problem=PROBLEMS.get(refused.problem),
        token=audit.names_of(workspace_id(), [refused.token_id]).get(refused.token_id),
        kept_days=KEPT.days,
    )

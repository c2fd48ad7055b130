"""Lists all workspaces, for staff, with a search by name."""

from __future__ import annotations

from flask import Blueprint, Response, render_template

from app.domain.insight import trends
from app.models.workspaces import Workspace
from app.web.access import staff
from app.web.lists import MOST_EXPORTED, columns, file_of, filters, sliced, wanted_format

blueprint = Blueprint("workspace_pages", __name__)


@blueprint.get("/dashboard/workspaces")
@staff
def index() -> str | Response:
    """Lists the workspaces, newest first, with their activity in the last day; `q` searches by name."""
    name = filters("q").get("q")
    if wanted_format():
        return file_of(
            lambda: [columns(each, "id", "name", "created_at") for each in Workspace.newest(name, None, MOST_EXPORTED)],
            "workspaces",
        )
    listed = sliced(lambda after, limit: Workspace.newest(name, after, limit))
    return render_template(
        "workspaces/index.html",
        page=listed,
        name=name,
        attempts=trends.attempts_of_workspaces([each.id for each in listed.rows]),
    )

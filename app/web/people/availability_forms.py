"""Availability: members set in the menu whether they get conversations assigned."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, flash, jsonify, redirect, request
from werkzeug.wrappers import Response

from app.domain.assignment import assignments
from app.errors import Conflict
from app.web import writes
from app.web.access import page, viewer, workspace_id
from app.web.forms import is_script
from app.web.redirects import ours, to

blueprint = Blueprint("availability_forms", __name__, url_prefix="/workspaces/<workspace>/availability")

# The buttons, and what each one changes.
PRESSES: dict[str, dict[str, Any]] = {
    "available": {"availability": "available"},
    "away": {"availability": "away"},
    "break": {"availability": "away", "reassign": False},
}
_GIVEN_BACK = (
    "You are away. On channels that assign conversations, those that wait for your answer go to others; the rest stays "
    "with you."
)


@blueprint.post("")
@page("conversations.answer")
def change() -> Response:
    """Makes the viewer available or away, and redirects back. Responds to scripts with JSON.

    Raises Conflict for support staff, and for an unknown button.
    """
    member_id, wanted = viewer().member_id, PRESSES.get(request.form.get("availability", ""))
    if member_id is None or wanted is None:
        raise Conflict("Only a member of the workspace can be available or away in it.")
    job = writes.submit("members.update", wanted, member_id)
    said = _said(wanted) if job.is_finished else writes.STILL_QUEUED
    if is_script():
        return jsonify(availability=wanted["availability"], said=said)
    if job.is_finished:
        flash(said, "good")
    back = ours(request.form.get("next", ""))
    return redirect(back, 303) if back else to("overviews.show")


def _said(wanted: dict[str, Any]) -> str:
    if wanted["availability"] == "available":
        return "You are available."
    if not wanted.get("reassign", True):
        return "You are away. Your conversations stay with you."
    if assignments.balanced_channels(workspace_id()):
        return _GIVEN_BACK
    return "You are away. No channel assigns conversations by itself, so yours stay with you."

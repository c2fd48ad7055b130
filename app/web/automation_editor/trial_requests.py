"""Tests a single HTTP request from the form of its step."""

from __future__ import annotations

from typing import Any

from flask import Blueprint

from app.domain.automations import request_tests
from app.errors import BellhopError, Conflict
from app.lib import json
from app.web.access import page
from app.web.automation_editor import editor_pages, editor_scenes
from app.web.forms import Answer, typed

blueprint = Blueprint("trial_requests", __name__, url_prefix="/workspaces/<workspace>/automations/<automation_id>/edit")

MOST_NAMES = 40
# The most characters of an answer that the page shows.
EXCERPT = 4_000


@blueprint.post("/request")
@page("automations.manage")
def send(automation_id: str) -> Answer:
    """Sends the request of a step, and shows the server's answer or the error in the step's form.

    Redirects to the picture if the step no longer exists.
    """
    copy, given = editor_scenes.find(automation_id), typed("contact_id")
    try:
        step = editor_scenes.step_asked_for(copy)
    except Conflict as gone:
        return editor_scenes.back(copy, gone)
    contact = editor_scenes.contact_of(given["contact_id"])
    try:
        if editor_scenes.copy_faults(copy):
            raise Conflict("First mend what keeps the draft from running.")
        tested = request_tests.send(copy.automation, copy.definition, step["id"], contact)
    except BellhopError as error:
        tested = request_tests.Tested(error.detail)
    shown: dict[str, Any] = {"error": tested.error, "status": tested.status, "duration_ms": tested.duration_ms}
    shown |= {"body": tested.body[:EXCERPT], "names": _names(step, tested), "contact_id": given["contact_id"]}
    return editor_pages.step_form(copy, step, tested=shown)


def _names(step: Any, tested: request_tests.Tested) -> list[tuple[str, str]]:
    """Returns the variables that the answer provides, with their values."""
    if not tested.saved or not isinstance(tested.saved.get("body"), (dict, list)):
        return []
    base = f"steps.{step['id']}.body"
    leaves = _leaves(tested.saved["body"], base)
    return [(path, json.dumps(value).decode()) for path, value in leaves[:MOST_NAMES]]


def _leaves(value: Any, path: str, depth: int = 0) -> list[tuple[str, Any]]:
    if depth > 6 or not value or not isinstance(value, (dict, list)):
        return [(path, value)]
    items = value.items() if isinstance(value, dict) else list(enumerate(value))[:3]
    return [leaf for key, inner in items for leaf in _leaves(inner, f"{path}.{key}", depth + 1)][:MOST_NAMES]

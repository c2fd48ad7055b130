"""Trials: a chat beside the picture that runs the draft, and tests of a single HTTP request.

Each request repeats the chat so far.
"""

from __future__ import annotations

from typing import Any

from flask import Blueprint

from app.domain.automations import request_tests
from app.domain.automations.editing.working_copies import Copy
from app.domain.triggers.event_kinds import EVENTS
from app.errors import BellhopError, Conflict, Invalid, Overloaded
from app.lib import json
from app.web.access import page
from app.web.automation_editor import editor_pages, editor_scenes, trial_talks
from app.web.automation_editor.editor_choices import Choices
from app.web.automation_editor.editor_scenes import of_copy
from app.web.automation_editor.trial_talks import Told
from app.web.forms import Answer, errors_of, status_of, typed

blueprint = Blueprint("trial_pages", __name__, url_prefix="/workspaces/<workspace>/automations/<automation_id>/edit")

MOST_NAMES = 40
# The most characters of an answer that the page shows.
EXCERPT = 4_000


@blueprint.get("/try")
@page("automations.manage")
@of_copy
def show(copy: Copy) -> Answer:
    """Shows the chat at its start: with an empty contact, and the event that starts the automation."""
    events = [each["event"] for each in copy.definition.get("triggers", []) if each.get("event") in EVENTS]
    return _answer(copy, Told(event=events[0] if events else ""))


@blueprint.post("/try")
@page("automations.manage")
@of_copy
def go_on(copy: Copy) -> Answer:
    """Shows the chat after the user's next move, or with the fault of an invalid move."""
    given = typed("do", "contact_id", "variables", "event", "moves", "text", "step", "status", "body")
    told = Told(given["contact_id"], given["variables"], given["event"], trial_talks.read_moves(given["moves"]))
    if given["do"] == "restart":
        told.moves = []
    elif given["do"] == "back":
        told.moves = told.moves[:-1]
    else:
        try:
            move = trial_talks.move_of(given["do"], given)
        except Invalid as error:
            return _answer(copy, told, errors_of(error), given)
        told.moves = [*told.moves, *([move] if move else [])][: trial_talks.MOST_MOVES]
    return _answer(copy, told)


@blueprint.post("/request")
@page("automations.manage")
@of_copy
def send_request(copy: Copy) -> Answer:
    """Sends the request of a step, and shows the server's answer or the error in the step's form."""
    step, given = editor_scenes.step_asked_for(copy), typed("contact_id")
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


def _answer(
    copy: Copy, told: Told, errors: dict[str, str] | None = None, given: dict[str, str] | None = None
) -> Answer:
    status, talk = 200 if not errors else 422, None
    choices = Choices(copy.definition)
    contact = editor_scenes.contact_of(told.contact_id)
    if not editor_scenes.copy_faults(copy):
        try:
            talk = trial_talks.talk(copy, contact, told)
        except Invalid as error:
            errors, status = errors_of(error), status_of(error)
        except Overloaded as error:
            errors = {"": error.detail}
    shown: dict[str, Any] = {"trail": talk.trail} if talk else {}
    return (
        editor_scenes.render(
            copy,
            "trial",
            talk=talk,
            told=told,
            moves=json.dumps(told.moves).decode(),
            errors=errors or {},
            given=given or {},
            people=[("", "Somebody without data"), *choices.people()],
            events=[("", "Nothing: it is started by hand"), *EVENTS.items()],
            **shown,
        ),
        status,
    )


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

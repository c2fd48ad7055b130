"""Trials: a chat beside the picture that runs the draft. Each request repeats the chat so far."""

from __future__ import annotations

from typing import Any

from flask import Blueprint

from app.domain.automations.editing.working_copies import Copy
from app.domain.triggers.event_kinds import EVENTS
from app.errors import Invalid, Overloaded
from app.lib import json
from app.web.access import page
from app.web.automation_editor import editor_scenes, trial_talks
from app.web.automation_editor.editor_choices import Choices
from app.web.automation_editor.trial_talks import Told
from app.web.forms import Answer, errors_of, status_of, typed

blueprint = Blueprint("trial_pages", __name__, url_prefix="/workspaces/<workspace>/automations/<automation_id>/edit")


@blueprint.get("/try")
@page("automations.manage")
def show(automation_id: str) -> Answer:
    """Shows the chat at its start: with an empty contact, and the event that starts the automation."""
    copy = editor_scenes.find(automation_id)
    events = [each["event"] for each in copy.definition.get("triggers", []) if each.get("event") in EVENTS]
    return _answer(copy, Told(event=events[0] if events else ""))


@blueprint.post("/try")
@page("automations.manage")
def go_on(automation_id: str) -> Answer:
    """Shows the chat after the user's next move, or with the fault of an invalid move."""
    copy = editor_scenes.find(automation_id)
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

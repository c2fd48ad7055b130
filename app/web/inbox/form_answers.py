"""Forms of conversations: reads the pressed button, and responds to browsers and to scripts."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

from flask import flash, jsonify, make_response, redirect
from werkzeug.wrappers import Response

from app.domain.people import workspaces
from app.errors import Conflict, Fault, Invalid, valid
from app.lib import clock, normalization
from app.models.conversations import Conversation
from app.web.access import workspace_id
from app.web.forms import is_script, sentence_of, status_of
from app.web.inbox import snooze_times, views

# The fields that `action_of` reads.
FIELDS = ("do", "assignee_id", "label", "until", "zone")


def action_of(given: Mapping[str, str], allowed: Container[str]) -> dict[str, Any]:
    """Returns the action of the pressed button, for `conversation_changes.ACTIONS`.

    Raises Invalid if the action is not `allowed`, and for an unreadable label or time.
    """
    do = given["do"]
    if do not in allowed:
        raise Invalid(Fault("/do", "There is no such change."))
    if do == "assign":
        return {"do": do, "assignee_id": given["assignee_id"] or None}
    if do in ("label", "unlabel"):
        return {"do": do, "label": valid("/label", normalization.label, given["label"])}
    if do == "snooze":
        zone = snooze_times.zone_of(given["zone"], workspaces.find(workspace_id()).timezone)
        return {"do": do, "until": snooze_times.read(given["until"], zone, clock.now()).isoformat()}
    return {"do": do}


def back(conversation: Conversation) -> Response:
    """Redirects to the conversation, in the list that the form was sent from."""
    return redirect(views.asked_for().address("inbox_pages.show", conversation_id=conversation.id), 303)


def told(conversation: Conversation, done: str) -> Response:
    """Responds to a change that was made. Scripts get the sentence `done`; others see it, if any."""
    if is_script():
        return jsonify(done=done)
    if done:
        flash(done, "good")
    return back(conversation)


def turned_down(conversation: Conversation, error: Invalid | Conflict, before: str = "") -> Response:
    """Responds to a refused change with the reason, which begins with `before`."""
    said = f"{before}{sentence_of(error)}"
    if is_script():
        return refused(error, {"": said})
    flash(said, "error")
    return back(conversation)


def refused(error: Invalid | Conflict, errors: dict[str, str], **further: Any) -> Response:
    """Returns the error for a script: a sentence for each field, and the `further` members."""
    return make_response(jsonify(errors=errors, **further), status_of(error))

"""Responses to forms of a conversation: a page for browsers, JSON for scripts."""

from __future__ import annotations

from typing import Any

from flask import flash, jsonify, redirect
from werkzeug.wrappers import Response

from app.errors import Conflict, Invalid
from app.models.conversations import Conversation
from app.web.forms import is_script, sentence_of, status_of
from app.web.inbox import views


def back(conversation: Conversation) -> Response:
    """Redirects to the conversation, in the list that the form was sent from."""
    return redirect(views.asked_for().address("inbox_pages.show", conversation_id=conversation.id), 303)


def told(conversation: Conversation, done: str) -> Response:
    """Responds to a change that was made, with the sentence `done` for a script or as a flash.

    An empty `done` flashes nothing.
    """
    if is_script():
        return jsonify(done=done)
    if done:
        flash(done, "good")
    return back(conversation)


def turned_down(conversation: Conversation, error: Invalid | Conflict, before: str = "") -> Response:
    """Responds to a refused change with the reason, for a script or as a flash.

    `before` begins the sentence.
    """
    said = f"{before}{sentence_of(error)}"
    if is_script():
        return refused(error, {"": said})
    flash(said, "error")
    return back(conversation)


def refused(error: Invalid | Conflict, errors: dict[str, str], **further: Any) -> Response:
    """Returns the error for a script: a sentence for each field, and the `further` members."""
    response = jsonify(errors=errors, **further)
    response.status_code = status_of(error)
    return response

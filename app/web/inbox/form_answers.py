"""Responses to forms of a conversation: a page for browsers, JSON for scripts."""

from __future__ import annotations

from typing import Any

from flask import jsonify, redirect, request
from werkzeug.wrappers import Response

from app.errors import Conflict, Invalid
from app.models.conversations import Conversation
from app.web.forms import status_of
from app.web.inbox import views


def is_script() -> bool:
    """Whether a script sent the form."""
    return request.accept_mimetypes.best == "application/json"


def back(conversation: Conversation) -> Response:
    """Redirects to the conversation, in the list that the form was sent from."""
    return redirect(views.asked_for().address("inbox_pages.show", conversation_id=conversation.id), 303)


def refused(error: Invalid | Conflict, errors: dict[str, str], **further: Any) -> Response:
    """Returns the error for a script: a sentence for each field, and the `further` members."""
    response = jsonify(errors=errors, **further)
    response.status_code = status_of(error)
    return response

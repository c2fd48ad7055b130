"""Saves drafts while they are typed, so that they are available on other machines."""

from __future__ import annotations

from flask import Blueprint, jsonify
from werkzeug.wrappers import Response

from app.domain.macros import drafts
from app.errors import Invalid
from app.models.conversations import Conversation
from app.web.access import page, viewer, workspace_id
from app.web.forms import errors_of, typed
from app.web.inbox.form_answers import refused

blueprint = Blueprint("draft_forms", __name__, url_prefix="/workspaces/<workspace>/inbox/<conversation_id>")


@blueprint.post("/draft")
@page("conversations.answer")
def save(conversation_id: str) -> Response:
    """Saves the draft under the form's key. Returns `is_kept`, as JSON: whether it was saved.

    Support staff have no drafts, so nothing is saved for them.
    """
    conversation = Conversation.find(workspace_id(), conversation_id)
    given = typed("kind", "text", "key")
    member_id = viewer().member_id
    if member_id is None:
        return jsonify(is_kept=False)
    try:
        is_kept = drafts.save(conversation, member_id, given["kind"], given["text"], given["key"])
    except Invalid as error:
        return refused(error, errors_of(error))
    return jsonify(is_kept=is_kept)

"""Saved replies while writing: a list, and one rendered for the conversation and the member."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flask import Blueprint, request
from werkzeug.wrappers import Response

from app.domain.contacts import contacts
from app.domain.macros import saved_replies
from app.errors import Conflict
from app.lib import graphemes, ids, json
from app.models.conversations import Conversation
from app.models.saved_replies import SavedReply
from app.models.uploads import Upload
from app.web.access import page, viewer, workspace_id
from app.web.inbox import compositions
from app.web.inbox.form_answers import refused

blueprint = Blueprint("reply_pages", __name__, url_prefix="/workspaces/<workspace>/inbox/<conversation_id>")

ANSWER = "conversations.answer"
# The most replies that the list shows, and the most matches that they are chosen from.
MOST_SHOWN, MOST_FOUND = 20, 100
_LONGEST_SEARCH = 100


@blueprint.get("/saved-replies")
@page(ANSWER)
def index(conversation_id: str) -> Response:
    """Lists saved replies that match `q`, as JSON; first the replies whose shortcut begins with `q`."""
    Conversation.find(workspace_id(), conversation_id)
    q = request.args.get("q", "").replace("\0", "")[:_LONGEST_SEARCH] or None
    found = SavedReply.newest(workspace_id(), q, None, MOST_FOUND)
    found.sort(key=lambda reply: (not reply.folded.startswith((q or "").casefold()), reply.folded))
    shown = [
        {"id": each.id, "shortcut": each.shortcut, "files": len(each.attachments)}
        | {"text": graphemes.cut(each.text, 200)}
        for each in found[:MOST_SHOWN]
    ]
    return _json({"data": shown, "has_more": len(found) > MOST_SHOWN})


@blueprint.get("/saved-replies/<saved_reply_id>")
@page(ANSWER)
def show(conversation_id: str, saved_reply_id: str) -> Response:
    """Returns a rendered saved reply as JSON, as in the API."""
    conversation = Conversation.find(workspace_id(), conversation_id)
    try:
        return _json(_rendered(conversation, SavedReply.find(workspace_id(), saved_reply_id)))
    except Conflict as error:
        return refused(error, {"": error.detail})


def inserted(conversation: Conversation, given: Mapping[str, str]) -> dict[str, Any]:
    """Returns `page_of` arguments with the saved reply appended. Raises NotFound, Overloaded."""
    try:
        rendered = _rendered(conversation, SavedReply.find(workspace_id(), given["saved_reply_id"]))
    except Conflict as error:
        return {"typed": given, "errors": {"text": error.detail}, "uploads": files_of_form()}
    text = "\n".join(part for part in (given["text"], rendered["rendered"]) if part)
    files = {each["id"]: each for each in [*files_of_form(), *rendered["attachments"]]}
    return {"typed": {**given, "text": text}, "missing": rendered["missing"], "uploads": list(files.values())}


def files_of_form() -> list[dict[str, Any]]:
    """Returns the files of saved replies in the form that still exist."""
    wanted = [each for each in compositions.upload_ids() if ids.is_id(each, "upl")]
    if not wanted:
        return []
    is_a_replys = Upload.id.in_(wanted) & Upload.saved_reply_id.is_null(False)
    return [{"id": each.id, "name": each.name} for each in Upload.in_workspace(workspace_id()).where(is_a_replys)]


def _rendered(conversation: Conversation, reply: SavedReply) -> dict[str, Any]:
    """Renders the reply for the contact and the viewer. Raises NotFound, Conflict, Overloaded."""
    contact = contacts.find(workspace_id(), conversation.contact_id)
    return saved_replies.render(reply, contact, viewer().member_id)


def _json(body: Mapping[str, Any]) -> Response:
    return Response(json.dumps(body), mimetype="application/json")

"""Saved replies: texts that members insert by shortcut."""

from __future__ import annotations

from functools import partial
from typing import Any

from flask import Response
from marshmallow import fields, validate

from app.api.authentication import caller
from app.api.lists import PageQuery, page_of
from app.api.openapi.problems import response_name
from app.api.parsing.blueprints import Blueprint
from app.api.routes import Document, accepts, reads, shows
from app.api.writes import accept, act
from app.domain.bodies.saved_replies import SavedReplyCreate, SavedReplyPatch
from app.domain.contacts import contacts
from app.domain.macros import saved_replies
from app.domain.macros.saved_replies import RenderedReplySchema, SavedReplySchema
from app.domain.people import members
from app.errors import Fault, Invalid
from app.lib import ids
from app.lib.schemas import Query, about
from app.models.conversations import Conversation
from app.models.saved_replies import SavedReply

blueprint = Blueprint("saved-replies", __name__, description="Texts that members insert by a shortcut.")


class SavedReplyQuery(PageQuery):
    q = fields.String(
        validate=validate.Length(1, 100),
        metadata=about("Those whose shortcut begins with this or whose text has it.", example="ref"),
    )


class RenderedQuery(Query):
    member_id = fields.String(metadata=about("The member who writes: `member` in the text."))


@reads(blueprint, "/saved-replies", "inbox", SavedReplySchema, SavedReplyQuery)
def list_saved_replies(query: dict[str, Any]) -> Document:
    """List saved replies, newest first."""
    find = partial(SavedReply.newest, caller().workspace_id, query.get("q"))
    return page_of(find, query, saved_replies.represent)


@accepts(blueprint, "POST /saved-replies", "inbox", SavedReplySchema, SavedReplyCreate, made=True)
def create_saved_reply(body: dict[str, Any]) -> Response:
    """Create a saved reply, up to 1,000 in a workspace."""
    return accept("saved_replies.create", body, ids.new("srp"))


shows(blueprint, "saved_reply", "inbox", SavedReplySchema, "Show a saved reply.")


@accepts(blueprint, "PATCH /saved-replies/<saved_reply_id>", "inbox", SavedReplySchema, SavedReplyPatch)
def update_saved_reply(body: dict[str, Any], saved_reply_id: str) -> Response:
    """Change the given fields of a saved reply."""
    return act("saved_replies.update", saved_reply_id, body)


@accepts(blueprint, "DELETE /saved-replies/<saved_reply_id>", "inbox", None)
def delete_saved_reply(saved_reply_id: str) -> Response:
    """Delete a saved reply. Macros that send it are refused from now on."""
    return act("saved_replies.delete", saved_reply_id)


@reads(
    blueprint,
    "/conversations/<conversation_id>/saved-replies/<saved_reply_id>",
    "inbox",
    RenderedReplySchema,
    RenderedQuery,
)
@blueprint.alt_response(409, response_name(409))
def render_saved_reply(query: dict[str, Any], conversation_id: str, saved_reply_id: str) -> Document:
    """Show a saved reply, rendered for the conversation's contact. Sends nothing."""
    workspace_id, member_id = caller().workspace_id, query.get("member_id")
    conversation = Conversation.find(workspace_id, conversation_id)
    reply = SavedReply.find(workspace_id, saved_reply_id)
    contact = contacts.find(workspace_id, conversation.contact_id)
    if member_id is not None and not members.exists(workspace_id, member_id):
        raise Invalid(Fault("/member_id", "There is no such member in this workspace."))
    return saved_replies.render(reply, contact, member_id)

"""Conversations: the messages between a contact and the workspace on one channel."""

from __future__ import annotations

from functools import partial
from typing import Any

from flask import Response
from marshmallow import fields, validate

from app.api.authentication import authorize, caller
from app.api.lists import PageQuery, page_of
from app.api.parsing.blueprints import Blueprint
from app.api.responses import BareResponse, respond
from app.api.routes import Document, accepts, reads, shows
from app.api.writes import accept
from app.domain.conversations import conversation_changes, conversation_counts, conversations, viewers
from app.domain.conversations.conversation_counts import ConversationCountsSchema
from app.domain.conversations.conversations import STATUSES, ConversationSchema
from app.domain.conversations.viewers import ViewerSchema
from app.lib import normalization
from app.lib.schemas import Formatted, RequestBody, ResponseBody, StrictBoolean, about, time_field
from app.models.conversations import Conversation

blueprint = Blueprint("conversations", __name__, description="Conversations with contacts.")


class ConversationPatch(RequestBody):
    """The fields of a conversation to change. `read` marks all its messages as read."""

    status = fields.String(validate=validate.OneOf(STATUSES))
    assignee_id = fields.String(allow_none=True, metadata=about("A member; null if it is not assigned."))
    labels = fields.List(
        Formatted(
            normalization.label,
            metadata={"minLength": 1, "maxLength": 100, "pattern": f"^{normalization.TAG}$", "example": "refund"},
        ),
        validate=validate.Length(max=conversation_changes.MOST_LABELS),
        metadata=about("Replaces the existing labels."),
    )
    snoozed_until = time_field(
        "until then the conversation is snoozed, or until the contact writes; it must be open. null wakes it.",
        allow_none=True,
    )
    read = StrictBoolean(
        validate=validate.Equal(True, error="This can only be true."),
        metadata=about(
            "All messages are read: `unread` is 0, and the contact sees it where the provider shows it.",
            const=True,
            example=True,
        ),
    )


class ConversationQuery(PageQuery):
    status = fields.String(validate=validate.OneOf(STATUSES))
    assignee_id = fields.String(metadata=about("A member, or `none`."))
    contact_id = fields.String()
    channel_id = fields.String()
    label = fields.String()
    snoozed = fields.Boolean()
    order = fields.String(
        validate=validate.OneOf(["newest", "waiting"]),
        metadata=about(
            "`waiting`: those whose contact waits for an answer, who has waited longest first. Other filters choose "
            "among the first 5,000 of these after the cursor."
        ),
    )


class Viewers(ResponseBody):
    """Everybody who is viewing a conversation; never more than a page."""

    data = fields.List(fields.Nested(ViewerSchema))


@reads(blueprint, "/conversations", "inbox", ConversationSchema, ConversationQuery)
def list_conversations(query: dict[str, Any]) -> Document:
    """List conversations, newest first.

    With `order=waiting`, list only conversations whose contact waits for an answer, the longest wait first.
    """
    workspace_id = caller().workspace_id
    if query.get("order") == "waiting":
        find = partial(Conversation.longest_waiting, workspace_id, query)
        return page_of(find, query, conversations.represent, ("waiting_since", "id"))
    return page_of(partial(Conversation.newest, workspace_id, query), query, conversations.represent)


@reads(blueprint, "/conversations/counts", "inbox", ConversationCountsSchema)
def count_conversations() -> Document:
    """Count the open conversations exactly, at the same cost for any number."""
    return conversation_counts.of(caller().workspace_id)


shows(blueprint, "conversation", "inbox", ConversationSchema, "Show a conversation.")


@accepts(blueprint, "PATCH /conversations/<conversation_id>", "inbox", ConversationSchema, ConversationPatch)
def update_conversation(body: dict[str, Any], conversation_id: str) -> Response:
    """Change a conversation, or mark it read.

    Closing it resumes the runs that a member's message holds.
    """
    found = Conversation.find(caller().workspace_id, conversation_id)
    return accept("conversations.update", body | {"contact_id": found.contact_id}, found.id)


@blueprint.route("/workspaces/<workspace>/conversations/<conversation_id>/typing", methods=["POST"])
@authorize("inbox")
@blueprint.response(204, description="Sent to the live streams that are open.")
def show_typing(conversation_id: str) -> Response:
    """Show for about six seconds that an answer is being typed. Makes no job, and stores nothing.

    Members see it on their live streams, and the visitor of a web chat in the chat. Repeat it every few seconds.
    """
    found = Conversation.find(caller().workspace_id, conversation_id)
    conversations.tell_typing(found, {"type": "api", "id": caller().token_id})
    return BareResponse(status=204)


@blueprint.route("/workspaces/<workspace>/conversations/<conversation_id>/presence", methods=["GET"])
@authorize("inbox")
@blueprint.response(200, Viewers)
def list_viewers(conversation_id: str) -> Response:
    """List who is viewing a conversation now."""
    found = Conversation.find(caller().workspace_id, conversation_id)
    return respond(200, {"data": viewers.of(found)})


@blueprint.route("/workspaces/<workspace>/conversations/<conversation_id>/presence", methods=["POST"])
@authorize("inbox")
@blueprint.response(204, description="Sent to the live streams that are open.")
def show_presence(conversation_id: str) -> Response:
    """Show for 30 seconds that you are viewing a conversation. Makes no job, and stores nothing.

    Members see it on their live streams. Repeat it every 20 seconds or so.
    """
    found = Conversation.find(caller().workspace_id, conversation_id)
    viewers.look(found, {"type": "api", "id": caller().token_id})
    return BareResponse(status=204)

"""Conversations and messages, as webhooks deliver them."""

from __future__ import annotations

from typing import get_args

from marshmallow import fields, validate

from app.api.responses import time
from app.api.schemas import ResponseBody
from app.domain.messages import Status


class AuthorSchema(ResponseBody):
    type = fields.String(
        required=True,
        metadata={
            "description": "`contact`, `member`, `api`, `automation` or `provider`; more may be added.",
            "example": "contact",
        },
    )
    id = fields.String(required=True, metadata={"description": "The author's identifier."})


class ConversationSchema(ResponseBody):
    id = fields.String(required=True)
    contact_id = fields.String(required=True)
    channel_id = fields.String(required=True)
    status = fields.String(required=True, validate=validate.OneOf(["open", "closed"]))
    assignee_id = fields.String(required=True, allow_none=True, metadata={"description": "A member; null: nobody."})
    last_message_at = time("When the latest message was added; null: there is none.", allow_none=True)
    created_at = time("When the conversation began.")


class MessageSchema(ResponseBody):
    id = fields.String(required=True)
    conversation_id = fields.String(required=True)
    direction = fields.String(required=True, validate=validate.OneOf(["in", "out"]))
    text = fields.String(required=True, allow_none=True, metadata={"example": "Yes, please."})
    status = fields.String(required=True, validate=validate.OneOf(get_args(Status)))
    failure = fields.Dict(
        required=True, allow_none=True, metadata={"description": "Why it was not sent: `code` and `detail`."}
    )
    author = fields.Nested(AuthorSchema, required=True)
    created_at = time("When the message was received or queued.")


# Components of the document besides those that operations refer to.
SCHEMAS = {"Conversation": ConversationSchema, "Message": MessageSchema}

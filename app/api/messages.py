"""Messages: listing, sending and resending them, and changing or deleting scheduled ones."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Any

from flask import Response
from marshmallow import ValidationError, fields, validate, validates_schema

from app.api.authentication import caller
from app.api.lists import PageQuery, page_of
from app.api.parsing.blueprints import Blueprint
from app.api.routes import Document, accepts, reads, shows
from app.api.writes import accept, act
from app.domain.bodies.messages import MessageCreate, MessagePatch, MessageToContact
from app.domain.conversations import messages
from app.domain.conversations.messages import MessageSchema
from app.domain.people import message_access
from app.errors import NotFound
from app.lib import ids
from app.lib.schemas import about, time_field
from app.models import message_searches
from app.models.conversations import Conversation, Message

blueprint = Blueprint("messages", __name__, description="Messages between contacts and the workspace.")

_ORDER = ("at", "id")
_BY_TIME = ("send_at", "id")


class ScheduledQuery(PageQuery):
    scheduled = fields.Boolean(
        validate=validate.Equal(True, error="This can only be true."),
        metadata=about("Those that are `scheduled`, the next first.", enum=[True]),
    )


class MessageQuery(ScheduledQuery):
    q = fields.String(
        validate=validate.Length(1, message_searches.LONGEST_SEARCH),
        metadata=about("Words or beginnings of words, all of which are in the text.", example="refund"),
    )
    contact_id = fields.String()
    conversation_id = fields.String()
    since = time_field("received or written then or later.")
    until = time_field("received or written before.")

    @validates_schema
    def is_one_list(self, data: dict[str, Any], **_: Any) -> None:
        """Raises ValidationError if `scheduled` is given with `q`, `since` or `until`."""
        if "scheduled" in data:
            faults = {name: ["Leave this or scheduled out."] for name in data.keys() & {"q", "since", "until"}}
            if faults:
                raise ValidationError(faults)


@reads(blueprint, "/conversations/<conversation_id>/messages", message_access.MESSAGES, MessageSchema, ScheduledQuery)
def list_messages_of_conversation(query: dict[str, Any], conversation_id: str) -> Document:
    """List the messages of a conversation, newest first, by `provider_time` or else `created_at`."""
    found = Conversation.find(caller().workspace_id, conversation_id)
    if "scheduled" in query:
        find = partial(Message.scheduled, {"conversation_id": found.id})
        return page_of(find, query, messages.represent, _BY_TIME)
    return page_of(partial(Message.latest, found.id), query, messages.represent, _ORDER)


@accepts(
    blueprint,
    "POST /conversations/<conversation_id>/messages",
    message_access.MESSAGES,
    MessageSchema,
    MessageCreate,
    made=True,
)
def write_message(body: dict[str, Any], conversation_id: str) -> Response:
    """Write in a conversation, and reopen it if it is closed. `status` shows the provider's answer."""
    found = Conversation.find(caller().workspace_id, conversation_id)
    payload = body | {"conversation_id": found.id, "contact_id": found.contact_id}
    return accept(_kind(body), payload, ids.new("msg"))


@reads(blueprint, "/messages", message_access.MESSAGES, MessageSchema, MessageQuery)
def list_messages(query: dict[str, Any]) -> Document:
    """List the messages of all conversations, the latest received or written first.

    `q` searches their texts.
    """
    workspace_id = caller().workspace_id
    if "scheduled" in query:
        named = {name: query[name] for name in ("contact_id", "conversation_id") if name in query}
        find = partial(Message.scheduled, named | {"workspace_id": workspace_id})
        return page_of(find, query, messages.represent, _BY_TIME)
    return page_of(partial(message_searches.newest, workspace_id, query), query, messages.represent)


@accepts(blueprint, "POST /messages", message_access.MESSAGES, MessageSchema, MessageToContact, made=True)
def send_message(body: dict[str, Any]) -> Response:
    """Write to a contact, or to a recipient on a channel; opens a conversation if there is none.

    Only some providers let a business write first; on others, people write before they can be written to.
    """
    return accept(_kind(body), body, ids.new("msg"))


shows(blueprint, "message", message_access.MESSAGES, MessageSchema, "Show a message.")


@accepts(blueprint, "PATCH /messages/<message_id>", message_access.MESSAGES, MessageSchema, MessagePatch)
def update_message(body: dict[str, Any], message_id: str) -> Response:
    """Change the text or the time of a message that is `scheduled`."""
    return _change_scheduled("scheduled_messages.update", message_id, body)


@accepts(blueprint, "DELETE /messages/<message_id>", message_access.MESSAGES, None)
def delete_message(message_id: str) -> Response:
    """Delete a message that is `scheduled`, with its files. It is not sent."""
    return _change_scheduled("scheduled_messages.delete", message_id, {})


@accepts(blueprint, "POST /messages/<message_id>/resend", message_access.MESSAGES, MessageSchema)
def resend_message(message_id: str) -> Response:
    """Resend a message that has `failed`, or whose outcome is `unknown`.

    In the latter case, the contact may get it twice.
    """
    payload = {}
    with suppress(NotFound):  # a queued write may create the message
        payload["contact_id"] = Message.find(caller().workspace_id, message_id).contact_id
    return act("messages.resend", message_id, payload)


def _kind(body: dict[str, Any]) -> str:
    return "scheduled_messages.create" if "send_at" in body else "messages.create"


def _change_scheduled(kind: str, message_id: str, body: dict[str, Any]) -> Response:
    names = {}
    with suppress(NotFound):  # a queued write may create the message
        found = Message.find(caller().workspace_id, message_id)
        names = {"contact_id": found.contact_id, "conversation_id": found.conversation_id}
    return act(kind, message_id, body | names)

"""Messages: what contacts and the workspace write to each other."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Any, ClassVar

from flask import Response
from marshmallow import ValidationError, fields, validate, validates_schema

from app.api.authentication import authorize, caller
from app.api.jobs import accepts_write
from app.api.lists import PageQuery, envelope, page, page_of
from app.api.parsing.blueprints import Blueprint
from app.api.responses import respond
from app.api.writes import accept, act
from app.channels.kinds import KINDS
from app.domain.bodies.attachments import AttachmentBody
from app.domain.channels import buttons, media
from app.domain.conversations import messages, recipients
from app.domain.conversations.messages import MOST_CHARACTERS, MessageSchema
from app.domain.people import message_access
from app.errors import NotFound
from app.lib import ids, normalization
from app.lib.schemas import BLANK, STORABLE, RequestBody, Time, about
from app.models.conversations import Conversation, Message
from app.models.jobs import Job

blueprint = Blueprint("messages", __name__, description="Messages between contacts and the workspace.")

_ORDER = ("at", "id")
_LABEL = f"^{normalization.TAG}$"
_LABEL_FORM = "Give a label without control characters that is more than spaces."
_ABSENT: dict[str, Any] = {"not": {}}
# Bodies that are refused.
_EMPTY = {
    "type": "object",
    "properties": {"text": {"pattern": BLANK}, "template": {"maxProperties": 0}, "attachments": {"maxItems": 0}},
}
_BUTTONS_ALONE = {
    "type": "object",
    "required": ["buttons"],
    "properties": {"text": {"pattern": BLANK}, "buttons": {"minItems": 1}},
}
_BUTTONS_OF_TEMPLATE = {
    "type": "object",
    "required": ["buttons", "template"],
    "properties": {"template": {"minProperties": 1}, "buttons": {"minItems": 1}},
}
_TO_NOBODY = [
    {"type": "object", "properties": {"contact_id": _ABSENT, "to": _ABSENT}},
    {"type": "object", "properties": {"contact_id": _ABSENT, "channel_id": _ABSENT}},
]
_TO_TWO = [
    {"type": "object", "required": [one, other], "properties": {one: {}, other: {}}}
    for one, other in (("contact_id", "to"), ("channel_kind", "to"), ("channel_kind", "channel_id"))
]


class ButtonBody(RequestBody):
    """A button of a message in a request."""

    id = fields.String(
        required=True,
        validate=validate.Regexp(buttons.ID[:-1] + r"\Z", error=f"Give {buttons.ID_FORM}."),
        metadata=about("The `button_id` of the reply.", pattern=buttons.ID, example="yes"),
    )
    label = fields.String(
        required=True,
        validate=[validate.Length(1, buttons.MOST_LABEL), validate.Regexp(_LABEL[:-1] + r"\Z", error=_LABEL_FORM)],
        metadata=about("What the contact sees; the text of the reply.", pattern=_LABEL, example="Yes, please"),
    )


class MessageCreate(RequestBody):
    """The body that writes in a conversation."""

    # With the simpler anyOf, generated clients would lose the fields.
    described: ClassVar[dict[str, Any]] = {
        "not": {"anyOf": [_EMPTY, _BUTTONS_ALONE, _BUTTONS_OF_TEMPLATE]},
        "example": {"text": "Does Friday suit you?", "buttons": [{"id": "yes", "label": "Yes, please"}]},
    }
    text = fields.String(
        validate=validate.Length(1, MOST_CHARACTERS),
        metadata=about("The text of the message; beside a file, its caption.", example="It is on its way."),
    )
    template = fields.Dict(
        metadata=about(
            "The template that the channel's provider requires outside its window, in the provider's "
            "own form. `text` is then the text that the inbox shows for it.",
            example={"name": "order_update", "language": {"code": "en"}},
        )
    )
    attachments = fields.List(
        fields.Nested(AttachmentBody), validate=validate.Length(max=media.MOST_FILES), metadata=about("Files.")
    )
    buttons = fields.List(
        fields.Nested(ButtonBody),
        validate=validate.Length(max=buttons.MOST),
        metadata=about("Answers to pick from, beside the text; each `id` and each `label` once."),
    )
    expires_at = Time(
        validate=STORABLE, metadata=about("The message is not sent from then on: it is `failed`, with `expired`.")
    )

    @validates_schema
    def is_not_empty(self, data: dict[str, Any], **_: Any) -> None:
        """Raises ValidationError for a message with nothing in it, or with buttons that have no text of ours."""
        if data.get("buttons") and data.get("template"):
            raise ValidationError("A template has its own buttons. Leave these or the template out.", "buttons")
        if data.get("text", "").strip():
            return
        if data.get("buttons"):
            raise ValidationError("A message with buttons needs a text.", "text")
        if not data.get("template") and not data.get("attachments"):
            raise ValidationError("A message needs a text, a template or an attachment.", "text")

    @validates_schema
    def has_different_buttons(self, data: dict[str, Any], **_: Any) -> None:
        """Raises ValidationError, by position, for a button with the identifier or the label of another."""
        faults: dict[str | int, Any] = {}
        for fault in buttons.repeated(data.get("buttons", ())):
            index, name = fault.pointer.split("/")[1:]
            faults.setdefault(int(index), {})[name] = [fault.detail]
        if faults:
            raise ValidationError({"buttons": faults})


class MessageToContact(MessageCreate):
    """The body that writes to a contact."""

    described: ClassVar[dict[str, Any]] = {
        "not": {"anyOf": [_EMPTY, _BUTTONS_ALONE, _BUTTONS_OF_TEMPLATE, *_TO_NOBODY, *_TO_TWO]},
        "example": {"contact_id": "con_01kaj5bd40e6rr3f5y2kq0w9xz", "text": "It is on its way."},
    }
    contact_id = fields.String(
        metadata=about("Writes in the contact's latest conversation, or opens one where a channel allows it.")
    )
    channel_id = fields.String(metadata=about("Only over this channel."))
    channel_kind = fields.String(
        validate=validate.OneOf(list(KINDS)), metadata=about("With `contact_id`: only over a channel of this kind.")
    )
    to = fields.String(
        validate=validate.Length(1, 100),
        metadata=about("With `channel_id`: a phone number, or the contact's identifier at the provider."),
    )

    @validates_schema
    def says_to_whom(self, data: dict[str, Any], **_: Any) -> None:
        """Raises ValidationError unless the message is either to a contact or to a recipient on a channel."""
        if "contact_id" in data and "to" in data:
            raise ValidationError("Give either `contact_id` or `to`.", "to")
        if "channel_kind" in data and "contact_id" not in data:
            raise ValidationError("Give `contact_id`, of whose channels this chooses one.", "channel_kind")
        if "channel_kind" in data and "channel_id" in data:
            raise ValidationError("Give either `channel_id` or `channel_kind`.", "channel_kind")
        if "contact_id" not in data and not {"channel_id", "to"} <= data.keys():
            raise ValidationError("Give `contact_id`, or `channel_id` and `to`.", "contact_id")


@blueprint.route("/workspaces/<workspace>/conversations/<conversation_id>/messages", methods=["GET"])
@authorize(message_access.MESSAGES)
@blueprint.arguments(PageQuery)
@blueprint.response(200, envelope(MessageSchema, many=True))
def list_messages_of_conversation(query: dict[str, Any], conversation_id: str) -> Response:
    """List the messages of a conversation, newest first, by `provider_time`, or `created_at` where there is none."""
    found = Conversation.find(caller().workspace_id, conversation_id)
    find = partial(Message.latest, found.id)
    of_conversation = {**query, "conversation_id": found.id}
    return respond(200, page_of(find, of_conversation, messages.represent, _ORDER))


@blueprint.route("/workspaces/<workspace>/conversations/<conversation_id>/messages", methods=["POST"])
@authorize(message_access.MESSAGES)
@blueprint.arguments(MessageCreate)
@accepts_write(MessageSchema, made=True)
def write_message(body: dict[str, Any], conversation_id: str) -> Response:
    """Write in a conversation, which is opened again if it is closed. The provider's answer changes the `status`."""
    found = Conversation.find(caller().workspace_id, conversation_id)
    payload = body | {"conversation_id": found.id, "contact_id": found.contact_id}
    return accept("messages.create", payload, ids.new("msg"), partial(recipients.check, found.workspace_id, payload))


@blueprint.route("/workspaces/<workspace>/messages", methods=["GET"])
@authorize(message_access.MESSAGES)
@blueprint.arguments(PageQuery)
@blueprint.response(200, envelope(MessageSchema, many=True))
def list_messages(query: dict[str, Any]) -> Response:
    """List the messages of all conversations, the latest received or queued first."""
    return respond(200, page(Message.in_workspace(caller().workspace_id), Message, query, messages.represent))


@blueprint.route("/workspaces/<workspace>/messages", methods=["POST"])
@authorize(message_access.MESSAGES)
@blueprint.arguments(MessageToContact)
@accepts_write(MessageSchema, made=True)
def send_message(body: dict[str, Any]) -> Response:
    """Write to a contact, or to a recipient on a channel; opens a conversation if there is none.

    Only some providers let a business write first; on others, people write before they can be written to.
    """
    workspace_id = caller().workspace_id

    def check() -> None:
        is_made = "channel_id" in body and Job.will_make(workspace_id, "channel", body["channel_id"])
        if not is_made:  # what the channel allows is not known yet
            recipients.check(workspace_id, body)

    return accept("messages.create", body, ids.new("msg"), check)


@blueprint.route("/workspaces/<workspace>/messages/<message_id>", methods=["GET"])
@authorize(message_access.MESSAGES)
@blueprint.response(200, envelope(MessageSchema))
def show_message(message_id: str) -> Response:
    """Show a message."""
    return respond(200, {"data": messages.represent(Message.find(caller().workspace_id, message_id))})


@blueprint.route("/workspaces/<workspace>/messages/<message_id>/resend", methods=["POST"])
@authorize(message_access.MESSAGES)
@accepts_write(MessageSchema)
def resend_message(message_id: str) -> Response:
    """Send a message again that has `failed`, or whose outcome is `unknown`: the contact may then get it twice."""
    payload = {}
    with suppress(NotFound):  # a queued write may create it
        payload["contact_id"] = Message.find(caller().workspace_id, message_id).contact_id
    return act("messages.resend", message_id, payload)

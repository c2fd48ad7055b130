"""The bodies that create or change a message: its content and its recipient."""

from __future__ import annotations

from typing import Any, ClassVar

from marshmallow import ValidationError, fields, validate, validates_schema

from app.channels.kinds import CHANNEL_KINDS
from app.domain.channels import buttons, media
from app.domain.conversations import scheduled_messages
from app.domain.conversations.messages import MOST_CHARACTERS
from app.lib import normalization
from app.lib.schemas import BLANK, NOT_BLANK, STORABLE, RequestBody, StrictBoolean, Time, about, time_field

_LABEL = f"^{normalization.TAG}$"
_LABEL_FORM = "Give a label without control characters that is more than spaces."
_ABSENT: dict[str, Any] = {"not": {}}
# JSON Schemas of bodies that the validators below refuse.
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
_CANCELLED_AT_ONCE = {
    "type": "object",
    "required": ["cancel_on_reply"],
    "properties": {"cancel_on_reply": {}, "send_at": _ABSENT},
}
_CONTRADICTORY = [_EMPTY, _BUTTONS_ALONE, _BUTTONS_OF_TEMPLATE]
_REFUSED = [*_CONTRADICTORY, _CANCELLED_AT_ONCE]
_TO_NOBODY = [
    {"type": "object", "properties": {"contact_id": _ABSENT, "to": _ABSENT}},
    {"type": "object", "properties": {"contact_id": _ABSENT, "channel_id": _ABSENT}},
]
_TO_TWO = [
    {"type": "object", "required": [one, other], "properties": {one: {}, other: {}}}
    for one, other in (("contact_id", "to"), ("channel_kind", "to"), ("channel_kind", "channel_id"))
]


class AttachmentBody(RequestBody):
    """A file to attach to a message or a saved reply."""

    upload_id = fields.String(
        required=True,
        metadata=about("From `POST uploads`, within a day, once; or a file of a saved reply, any number of times."),
    )


class ButtonBody(RequestBody):
    """A button of a message: a press comes back as a reply with its `id` and `label`."""

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


class MessageContent(RequestBody):
    """The content of a message: a text, a template or attachments, at least one of them."""

    # With the simpler anyOf, generated clients would lose the fields.
    described: ClassVar[dict[str, Any]] = {"not": {"anyOf": _CONTRADICTORY}}
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

    @validates_schema
    def is_not_empty(self, data: dict[str, Any], **_: Any) -> None:
        """Raises ValidationError for an empty message, and for buttons without a text or with a template."""
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
        """Raises ValidationError, by position, for buttons with the same identifier or label."""
        faults: dict[str | int, Any] = {}
        for fault in buttons.repeated(data.get("buttons", ())):
            index, name = fault.pointer.split("/")[1:]
            faults.setdefault(int(index), {})[name] = [fault.detail]
        if faults:
            raise ValidationError({"buttons": faults})


class MessageCreate(MessageContent):
    """A message in a conversation, sent now or at `send_at`."""

    described: ClassVar[dict[str, Any]] = {
        "not": {"anyOf": _REFUSED},
        "example": {"text": "Does Friday suit you?", "buttons": [{"id": "yes", "label": "Yes, please"}]},
    }
    expires_at = Time(
        validate=STORABLE, metadata=about("The message is not sent from then on: it is `failed`, with `expired`.")
    )
    send_at = time_field(f"the message is `scheduled` until then, {scheduled_messages.MOST_DAYS} days at most.")
    cancel_on_reply = StrictBoolean(
        metadata=about(
            "With `send_at`: if the contact writes before, it is not sent. By default true.", default=True, example=True
        )
    )

    @validates_schema
    def is_in_time(self, data: dict[str, Any], **_: Any) -> None:
        """Raises ValidationError if the message expires by `send_at`, or `cancel_on_reply` lacks it."""
        if "cancel_on_reply" in data and "send_at" not in data:
            raise ValidationError("Only a message with `send_at` can be cancelled.", "cancel_on_reply")
        if "send_at" in data and "expires_at" in data and data["send_at"] >= data["expires_at"]:
            raise ValidationError("The message will have expired by then.", "send_at")


class MessagePatch(RequestBody):
    """The fields of a scheduled message to change. None is required."""

    text = fields.String(
        validate=[
            validate.Length(1, MOST_CHARACTERS),
            validate.Regexp(NOT_BLANK, error="A message without text cannot be sent."),
        ],
        metadata={"example": "Your parcel is here."},
    )
    send_at = time_field(f"when it is sent, within {scheduled_messages.MOST_DAYS} days.")


class MessageToContact(MessageCreate):
    """A message to a contact (`contact_id`), or to the recipient `to` on a channel (`channel_id`)."""

    described: ClassVar[dict[str, Any]] = {
        "not": {"anyOf": [*_REFUSED, *_TO_NOBODY, *_TO_TWO]},
        "example": {"contact_id": "con_01kaj5bd40e6rr3f5y2kq0w9xz", "text": "It is on its way."},
    }
    contact_id = fields.String(
        metadata=about("Writes in the contact's latest conversation, or opens one where a channel allows it.")
    )
    channel_id = fields.String(metadata=about("Only over this channel."))
    channel_kind = fields.String(
        validate=validate.OneOf(list(CHANNEL_KINDS)),
        metadata=about("With `contact_id`: only over a channel of this kind."),
    )
    to = fields.String(
        validate=validate.Length(1, 100),
        metadata=about("With `channel_id`: a phone number, or the contact's identifier at the provider."),
    )

    @validates_schema
    def says_to_whom(self, data: dict[str, Any], **_: Any) -> None:
        """Raises ValidationError unless the recipient is `contact_id`, or `to` with `channel_id`.

        Also if `channel_kind` is given without `contact_id` or together with `channel_id`.
        """
        if "contact_id" in data and "to" in data:
            raise ValidationError("Give either `contact_id` or `to`.", "to")
        if "channel_kind" in data and "contact_id" not in data:
            raise ValidationError("Give `contact_id`, of whose channels this chooses one.", "channel_kind")
        if "channel_kind" in data and "channel_id" in data:
            raise ValidationError("Give either `channel_id` or `channel_kind`.", "channel_kind")
        if "contact_id" not in data and not {"channel_id", "to"} <= data.keys():
            raise ValidationError("Give `contact_id`, or `channel_id` and `to`.", "contact_id")

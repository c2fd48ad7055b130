"""The bodies that create and change broadcasts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from marshmallow import ValidationError, fields, validate, validates_schema

from app.domain.automations import definitions
from app.domain.automations.definitions import known_names
from app.domain.bodies.messages import MessageContent
from app.domain.broadcasts import broadcasts
from app.domain.conversations.messages import MOST_TEMPLATE_BYTES
from app.domain.segments import segments
from app.domain.work.controlled_batches import MOST_PER_SECOND
from app.errors import Fault, Invalid
from app.lib import json, normalization
from app.lib.schemas import Formatted, RequestBody, StrictBoolean, StrictInteger, about, time_field
from app.models.broadcasts import TIME_ZONES

_PAIRS = (("segment_id", "filter"), ("message", "automation_id"))
_BOTH = [{"type": "object", "required": list(pair), "properties": {name: {} for name in pair}} for pair in _PAIRS]
_NEITHER = [{"type": "object", "properties": {name: {"not": {}} for name in pair}} for pair in _PAIRS]
_EXAMPLE = {
    "name": "Autumn sale",
    "filter": {"field": "contact.tags", "is": "contains", "value": "regular"},
    "message": {"text": "Hello {{ contact.first_name }}, everything is half the price until Sunday."},
}


_NAMES: known_names.Names = {"contact": known_names.CONTACT, **known_names.WORKSPACE}


class BroadcastContent(MessageContent):
    """The message of a broadcast. Its texts are templates that can name the contact."""

    described: ClassVar[dict[str, Any]] = {**MessageContent.described, "example": _EXAMPLE["message"]}

    def on_bind_field(self, field_name: str, field_obj: fields.Field[Any]) -> None:
        """Describes `text` as a template. marshmallow calls this for each field."""
        super().on_bind_field(field_name, field_obj)
        if field_name == "text":
            field_obj.metadata = about(
                "A template in Liquid that can name `contact`; beside a file, the caption.",
                example=_EXAMPLE["message"]["text"],  # type: ignore[index]
            )


class BroadcastPatch(RequestBody):
    """The fields of a scheduled broadcast to change. None is required."""

    described: ClassVar[dict[str, Any]] = {
        "not": {"anyOf": _BOTH},
        "example": {"name": "Winter sale", "send_at": "2027-01-04T09:00:00Z"},
    }
    name = Formatted(
        normalization.name,
        metadata=about("For people; it need not be unique.", **normalization.NAME_SCHEMA, example="Autumn sale"),
    )
    segment_id = fields.String(metadata=about("The segment that it is for, as it is when the broadcast starts."))
    filter = fields.Dict(metadata={"$ref": "#/components/schemas/Condition", **segments.ABOUT_FILTER})
    channel_id = fields.String(
        allow_none=True,
        metadata=about(
            "The only channel to use; null, the default: that of each contact's latest conversation.", example=None
        ),
    )
    message = fields.Nested(BroadcastContent)
    automation_id = fields.String(metadata=about("The published automation to start for each contact."))
    send_at = time_field(
        f"when it starts, {broadcasts.MOST_DAYS} days ahead at most; null, the default: at once.", allow_none=True
    )
    time_zone = fields.String(
        validate=validate.OneOf(TIME_ZONES),
        metadata=about(
            "`contact`: `send_at` is a time on the workspace's clock, and each contact gets the message when it is that"
            " time where they are, or at once if that has passed."
        ),
    )
    per_second = StrictInteger(
        allow_none=True,
        validate=validate.Range(1, MOST_PER_SECOND),
        metadata=about("The most contacts that are reached in a second; null, the default: as the channel allows."),
    )
    canary = StrictBoolean(metadata=about("Reach one contact, then wait for `…/continue`."))

    @validates_schema
    def says_one_thing(self, data: dict[str, Any], **_: Any) -> None:
        """Raises ValidationError if both fields of a pair in _PAIRS are given."""
        for name, other in _PAIRS:
            if name in data and other in data:
                raise ValidationError(f"Give either `{name}` or `{other}`.", other)

    @validates_schema
    def can_be_judged(self, data: dict[str, Any], **_: Any) -> None:
        """Raises Invalid, with a pointer to each fault of the filter and of the message's templates."""
        faults = definitions.filter_faults(data["filter"], "/filter") if "filter" in data else []
        if faults := [*faults, *_message_faults(data.get("message", {}))]:
            raise Invalid(*faults)


class BroadcastCreate(BroadcastPatch):
    """A broadcast to create; with `dry_run`, only the contacts that it would reach are counted."""

    # With the simpler oneOf, generated clients would lose the fields.
    described: ClassVar[dict[str, Any]] = {"not": {"anyOf": [*_BOTH, *_NEITHER]}, "example": _EXAMPLE}
    REQUIRED = ("name",)
    dry_run = StrictBoolean(metadata=about("Only count the contacts that it would reach."))

    @validates_schema
    def says_what_to_whom(self, data: dict[str, Any], **_: Any) -> None:
        """Raises ValidationError if a pair in _PAIRS is missing, or `send_at` for contacts' time zones."""
        for name, other in _PAIRS:
            if name not in data and other not in data:
                raise ValidationError(f"Give `{name}` or `{other}`.", name)
        if data.get("time_zone") == "contact" and data.get("send_at") is None:
            raise ValidationError("Give the time that it has to be where a contact is.", "send_at")


def _message_faults(message: Mapping[str, Any]) -> Iterator[Fault]:
    template = message.get("template")
    if template is not None and len(json.dumps(template)) > MOST_TEMPLATE_BYTES:
        yield Fault("/message/template", f"A template has at most {MOST_TEMPLATE_BYTES // 1024} KiB.")
        return
    for name in ("text", "template"):
        yield from known_names.value_faults(message.get(name), f"/message/{name}", _NAMES)

"""Representations of broadcasts, their rows and previews, as the API shows them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from marshmallow import fields, validate

from app.domain.broadcasts import broadcast_choices, tallies
from app.domain.channels import media
from app.domain.channels.buttons import ButtonSchema
from app.domain.channels.media import AttachmentSchema
from app.domain.contacts import contacts
from app.domain.contacts.contacts import ContactSchema
from app.domain.segments import segments
from app.lib.schemas import ResponseBody, about, time
from app.models.broadcasts import OUTCOMES, REASONS, STATES, TIME_ZONES, Broadcast


class BroadcastMessageSchema(ResponseBody):
    text = fields.String(allow_none=True, metadata={"example": "Hello {{ contact.first_name }}!"})
    template = fields.Dict(allow_none=True, metadata={"example": None})
    attachments = fields.List(fields.Nested(AttachmentSchema))
    buttons = fields.List(fields.Nested(ButtonSchema))


class BroadcastSchema(ResponseBody):
    id = fields.String()
    name = fields.String(metadata={"example": "Autumn sale"})
    state = fields.String(validate=validate.OneOf(STATES))
    problem = fields.String(
        allow_none=True, metadata=about("Why it has paused by itself, and what to do.", example=None)
    )
    segment_id = fields.String(
        allow_none=True, metadata=about("The segment it is for; null: the filter was given.", example=None)
    )
    filter = fields.Dict(
        allow_none=True,
        metadata=about("Whom it is for; that of its segment from the start on, null before.", example=segments.EXAMPLE),
    )
    channel_id = fields.String(
        allow_none=True, metadata=about("The only channel it uses; null: that of each contact's latest conversation.")
    )
    message = fields.Nested(BroadcastMessageSchema, allow_none=True)
    automation_id = fields.String(allow_none=True, metadata=about("The automation it starts.", example=None))
    send_at = time("When it starts; null: at once.", allow_none=True)
    time_zone = fields.String(validate=validate.OneOf(TIME_ZONES), metadata=about("Whose clock `send_at` follows."))
    per_second = fields.Integer(allow_none=True)
    canary = fields.Boolean(metadata=about("Whether it waits after the first contact."))
    count = fields.Integer(metadata=about("How many contacts it is for; fixed soon after its start.", example=1200))
    handled = fields.Integer(metadata=about("How many of them were reached or skipped.", example=800))
    waiting = fields.Integer(metadata=about("How many messages are on their way to a provider.", example=60))
    sent = fields.Integer(metadata=about("How many messages were sent, those included that have arrived."))
    delivered = fields.Integer(metadata=about("How many of these were delivered, those included that were read."))
    read = fields.Integer(metadata=about("How many of these were read."))
    replied = fields.Integer(metadata=about("How many contacts wrote within 7 days of their message."))
    failed = fields.Integer(metadata=about("How many messages failed."))
    unknown = fields.Integer(  # type: ignore[assignment]
        metadata=about("How many messages have an outcome that is not known.")
    )
    started = fields.Integer(metadata=about("How many runs it has begun."))
    skipped = fields.Dict(
        keys=fields.String(validate=validate.OneOf(REASONS)),
        values=fields.Integer(),
        metadata=about("How many contacts were skipped, by reason.", example={"opted_out": 12}),
    )
    failures = fields.Dict(
        keys=fields.String(),
        values=fields.Integer(),
        metadata=about("How many messages failed, by the code of their failure.", example={}),
    )
    created_by = fields.String(
        allow_none=True, metadata=about("Who created it.", example="tok_01kaj5bd40e6rr3f5y2kq0w9xz")
    )
    created_at = time("When it was created.")
    started_at = time("When it started; contacts created later are not in it.", allow_none=True)
    finished_at = time("When it was done or aborted.", allow_none=True)


class BroadcastPreviewSchema(ResponseBody):
    count = fields.Integer(metadata=about("How many contacts it would reach.", example=1180))
    is_complete = fields.Boolean(metadata=about("False if there was no time to look at all contacts.", example=True))
    left_out = fields.Dict(
        keys=fields.String(),
        values=fields.Integer(),
        metadata=about("How many more contacts match and would be skipped, by reason.", example={"opted_out": 12}),
    )
    looked_at = fields.Integer(
        metadata=about("Of how many contacts it is known whether they would be skipped.", example=1192)
    )
    sample = fields.List(fields.Nested(ContactSchema), metadata=about("The newest contacts that match."))


class BroadcastRowSchema(ResponseBody):
    contact_id = fields.String()
    outcome = fields.String(validate=validate.OneOf(OUTCOMES))
    reason = fields.String(
        allow_none=True, validate=validate.OneOf(REASONS), metadata=about("Why it was skipped.", example=None)
    )
    message_id = fields.String(allow_none=True, metadata=about("The message, whose `status` says what came of it."))
    run_id = fields.String(allow_none=True, metadata=about("The run that it began.", example=None))
    replied_at = time("When the contact first wrote within 7 days.", allow_none=True)
    at = time("When the contact was reached or skipped.")


def represent(broadcast: Broadcast) -> dict[str, Any]:
    """Returns the broadcast as the API shows it."""
    return represent_all([broadcast])[0]


def represent_all(found: Iterable[Broadcast]) -> list[dict[str, Any]]:
    """Returns the broadcasts as the API shows them, with one statement for all."""
    listed = list(found)
    counted = tallies.of([each.id for each in listed])
    return [represent_counted(each, counted[each.id]) for each in listed]


def represent_counted(broadcast: Broadcast, amounts: Mapping[str, int]) -> dict[str, Any]:
    """Returns the broadcast as the API shows it, with `amounts` from `tallies`."""
    message = broadcast.message and _shown(broadcast.message)
    return BroadcastSchema.of(broadcast, message=message, **tallies.shown(amounts))


def preview(workspace_id: str, condition: Mapping[str, Any], payload: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the contacts that a broadcast would reach now, as the API shows them."""
    found = broadcast_choices.preview(workspace_id, condition, payload)
    return BroadcastPreviewSchema.of(found, sample=[contacts.represent(each) for each in found.sample])


represent_row = BroadcastRowSchema.of


def _shown(message: Mapping[str, Any]) -> dict[str, Any]:
    shown = {"text": None, "template": None, "buttons": [], **message}
    return BroadcastMessageSchema.of(None, **shown | {"attachments": media.shown(message.get("attachments", ()))})

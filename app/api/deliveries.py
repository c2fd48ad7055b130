"""Deliveries: the log of what was sent, and what came of it."""

from __future__ import annotations

from typing import Any

from flask import Response
from marshmallow import fields, validate

from app.api.authentication import authorize, caller
from app.api.jobs import accepts_write
from app.api.lists import PageQuery, collection, envelope, page
from app.api.parsing import Blueprint, Schema, Time
from app.api.responses import respond, time
from app.api.writes import accept
from app.domain import deliveries
from app.models.deliveries import Delivery

blueprint = Blueprint("deliveries", __name__, description="Events on their way to endpoints.")

STATUSES = ("pending", "delivered", "failed", "held", "cancelled")


class DeliverySchema(Schema):
    id = fields.String(required=True, metadata={"description": "Also sent as X-Service-Delivery, in every attempt."})
    event_id = fields.String(required=True)
    endpoint_id = fields.String(required=True)
    kind = fields.String(required=True)
    status = fields.String(required=True, validate=validate.OneOf(STATUSES))
    attempts = fields.Integer(required=True, metadata={"description": "How many attempts have ended."})
    next_attempt_at = time("When the next attempt is due.", allow_none=True)
    last_error = fields.String(required=True, allow_none=True)
    created_at = time("When the event happened.")
    delivered_at = time("When an attempt succeeded.", allow_none=True)
    resent_from = fields.String(required=True, allow_none=True)


class AttemptSchema(Schema):
    number = fields.Integer(required=True)
    at = time("When the attempt began.")
    duration_ms = fields.Integer(required=True)
    status = fields.Integer(required=True, allow_none=True, metadata={"description": "The status code of the answer."})
    error = fields.String(required=True, allow_none=True, metadata={"description": "Why it failed; null: it did not."})
    response_body = fields.String(required=True, allow_none=True, metadata={"description": "At most 16 KiB of it."})
    trigger = fields.String(required=True, validate=validate.OneOf(["automatic", "resend"]))


class DeliveryWithAttemptsSchema(DeliverySchema):
    body = fields.String(required=True, allow_none=True, metadata={"description": "The bytes that are sent, as text."})
    attempts_log = fields.List(fields.Nested(AttemptSchema), required=True)


class DeliveryQuery(PageQuery):
    endpoint_id = fields.String()
    status = fields.String(validate=validate.OneOf(STATUSES))
    kind = fields.String()
    since = Time(metadata={"description": "RFC 3339; made at that time or later."})
    until = Time(metadata={"description": "RFC 3339; made before that time."})


@collection(blueprint, "/webhooks/deliveries")
@authorize("webhooks")
@blueprint.arguments(DeliveryQuery, location="query")
@blueprint.response(200, envelope(DeliverySchema, many=True))
def list_deliveries(query: dict[str, Any]) -> Response:
    """List deliveries, newest first."""
    found = Delivery.matching(caller().workspace_id, query)
    return respond(200, page(found, Delivery, query, deliveries.represent))


@blueprint.route("/workspaces/<workspace>/webhooks/deliveries/<delivery_id>", methods=["GET"])
@authorize("webhooks")
@blueprint.response(200, envelope(DeliveryWithAttemptsSchema))
def show_delivery(delivery_id: str) -> Response:
    """Show a delivery with its body and all its attempts."""
    return respond(200, {"data": deliveries.represent_whole(deliveries.find(caller().workspace_id, delivery_id))})


@blueprint.route("/workspaces/<workspace>/webhooks/deliveries/<delivery_id>/resend", methods=["POST"])
@authorize("webhooks")
@accepts_write(DeliverySchema, made=True)
def resend_delivery(delivery_id: str) -> Response:
    """Send a delivery once more: a failed or held one itself, a delivered one as a new delivery of the same event."""
    workspace_id = caller().workspace_id
    return accept(
        "deliveries.resend",
        {"delivery_id": delivery_id},
        check=lambda: deliveries.find_resendable(workspace_id, delivery_id),
    )

"""Deliveries: the log of events sent to endpoints, and their outcomes."""

from __future__ import annotations

from functools import partial
from typing import Any

from flask import Response
from marshmallow import fields, validate

from app.api.authentication import caller
from app.api.lists import PageQuery, envelope, page
from app.api.parsing.blueprints import Blueprint
from app.api.responses import respond
from app.api.routes import Document, accepts, reads
from app.api.writes import accept, is_dry_run
from app.domain.bodies.replays import DeliveriesDiscard, DiscardFilter
from app.domain.deliveries import deliveries, discards
from app.domain.deliveries.deliveries import DeliverySchema, DeliveryWithAttemptsSchema
from app.domain.deliveries.discards import DiscardPreviewSchema
from app.domain.jobs import parts
from app.domain.people import message_access
from app.domain.resources import JobSchema
from app.lib.schemas import Time, Whole, about
from app.models.deliveries import STATUSES, Delivery
from app.outbound.answers import ERROR_CODES

blueprint = Blueprint("deliveries", __name__, description="Events on their way to endpoints.")


class DeliveryQuery(PageQuery):
    endpoint_id = fields.String()
    status = fields.String(validate=validate.OneOf(STATUSES))
    kind = fields.String()
    error_code = fields.String(validate=validate.OneOf(ERROR_CODES), metadata=about("Why the last attempt failed."))
    status_code = Whole(
        validate=validate.Range(100, 599, error="It must be from {min} to {max}."),
        metadata=about("The receiver's status in the last attempt."),
    )
    since = Time(metadata=about("RFC 3339; made at that time or later."))
    until = Time(metadata=about("RFC 3339; made before that time."))


@reads(blueprint, "/webhooks/deliveries", message_access.EVENTS, DeliverySchema, DeliveryQuery)
def list_deliveries(query: dict[str, Any]) -> Document:
    """List deliveries, newest first."""
    return page(Delivery, query, deliveries.represent)


@reads(blueprint, "/webhooks/deliveries/<delivery_id>", message_access.EVENTS, DeliveryWithAttemptsSchema)
def show_delivery(delivery_id: str) -> Document:
    """Show a delivery with its body and all its attempts."""
    return deliveries.represent_whole(Delivery.find(caller().workspace_id, delivery_id))


@accepts(blueprint, "POST /webhooks/deliveries/<delivery_id>/resend", message_access.EVENTS, DeliverySchema, made=True)
def resend_delivery(delivery_id: str) -> Response:
    """Send a delivery now; a delivered one as a new delivery of the same event.

    Any other delivery keeps its identifier. A failed or held delivery starts its retries over. A delivery that waits
    for its retry becomes due, and keeps its schedule of retries; if it is due already, nothing changes. The write fails
    with `conflict` while an attempt is in progress, and if the endpoint is stopped or deleted.
    """
    return accept("deliveries.resend", {"delivery_id": delivery_id})


@accepts(blueprint, "POST /webhooks/discards", "webhooks", JobSchema, DeliveriesDiscard, made=True)
@blueprint.alt_response(
    200, schema=envelope(DiscardPreviewSchema), description="The result of a dry run.", success=True
)
def discard_deliveries(body: dict[str, Any]) -> Response:
    """Discard selected failed and held deliveries, or count them with `dry_run`.

    They become `cancelled` and are never sent again. One job discards them in parts; its `progress` says how many are
    done. Deliveries with an attempt in progress, and deliveries that fail after `as_of`, are left alone.
    """
    workspace_id, filters = caller().workspace_id, DiscardFilter.as_text(body["filter"])
    if is_dry_run(body):
        return respond(200, {"data": discards.preview(workspace_id, filters)})
    payload = discards.payload(filters, body["reason"], body.get("as_of"))
    return accept("deliveries.discard", payload, check=partial(parts.refuse_more, workspace_id, parts.MOST_UNFINISHED))

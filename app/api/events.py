"""Events: what happened in the workspace, and which endpoints it was sent to."""

from __future__ import annotations

from functools import partial
from typing import Any

from flask import Response
from marshmallow import fields

from app.api.authentication import authorize, caller
from app.api.jobs import accepts_write
from app.api.lists import PageQuery, envelope, page_of
from app.api.parsing.blueprints import Blueprint
from app.api.responses import respond
from app.api.writes import accept
from app.domain.deliveries import deliveries
from app.domain.deliveries.deliveries import DeliverySchema
from app.domain.people import message_access
from app.domain.webhooks import catalogue
from app.domain.work import events
from app.domain.work.events import EventSchema
from app.lib import ids
from app.lib.schemas import OneOf, RequestBody, Time, about
from app.models.deliveries import Delivery
from app.models.events import Event

blueprint = Blueprint("events", __name__, description="What happened in the workspace.")


class EventWithDeliveriesSchema(EventSchema):
    deliveries = fields.List(fields.Nested(DeliverySchema), metadata=about("The newest first, 1,000 at most."))


class EventQuery(PageQuery):
    kind = fields.String(validate=OneOf(list(catalogue.KINDS)))
    contact_id = fields.String()
    since = Time(metadata=about("RFC 3339; happened at that time or later."))
    until = Time(metadata=about("RFC 3339; happened before that time."))


class EventResend(RequestBody):
    """The endpoint to send an event to. It need not be subscribed to the event's kind."""

    endpoint_id = fields.String(
        required=True, metadata=about("The endpoint to send it to, whatever it is subscribed to.")
    )


@blueprint.route("/workspaces/<workspace>/events", methods=["GET"])
@authorize(message_access.EVENTS)
@blueprint.arguments(EventQuery)
@blueprint.response(200, envelope(EventSchema, many=True))
def list_events(query: dict[str, Any]) -> Response:
    """List events, newest first. Events are listed while their bodies are kept."""
    kinds = [query["kind"]] if "kind" in query else list(catalogue.KINDS)
    return respond(200, page_of(partial(Event.newest, caller().workspace_id, kinds, query), query, events.represent))


@blueprint.route("/workspaces/<workspace>/events/<event_id>", methods=["GET"])
@authorize(message_access.EVENTS)
@blueprint.response(200, envelope(EventWithDeliveriesSchema))
def show_event(event_id: str) -> Response:
    """Show an event with its deliveries; once its body is deleted, for as long as these are kept."""
    event = events.find(caller().workspace_id, event_id)
    sent = [deliveries.represent(delivery) for delivery in Delivery.of_event(event.workspace_id, event.id)]
    return respond(200, {"data": {**events.represent(event), "deliveries": sent}})


@blueprint.route("/workspaces/<workspace>/events/<event_id>/resend", methods=["POST"])
@authorize(message_access.EVENTS)
@blueprint.arguments(EventResend)
@accepts_write(DeliverySchema, made=True)
def resend_event(body: dict[str, Any], event_id: str) -> Response:
    """Send an event to one endpoint as a new delivery, even if it is not subscribed to the kind."""
    payload = {"event_id": event_id, "endpoint_id": body["endpoint_id"]}
    return accept("deliveries.create", payload, ids.new("dlv"))

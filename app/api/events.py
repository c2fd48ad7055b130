"""Events: what happened in the workspace, and which endpoints it was sent to."""

from __future__ import annotations

from functools import partial
from typing import Any

from flask import Response
from marshmallow import fields

from app.api.authentication import caller
from app.api.lists import PageQuery, page_of
from app.api.parsing.blueprints import Blueprint
from app.api.routes import Document, accepts, reads
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
    kind = fields.String(validate=OneOf(list(catalogue.EVENT_KINDS)))
    contact_id = fields.String()
    since = Time(metadata=about("RFC 3339; happened at that time or later."))
    until = Time(metadata=about("RFC 3339; happened before that time."))


class EventResend(RequestBody):
    endpoint_id = fields.String(
        required=True, metadata=about("The endpoint to send it to, whatever it is subscribed to.")
    )


@reads(blueprint, "/events", message_access.EVENTS, EventSchema, EventQuery)
def list_events(query: dict[str, Any]) -> Document:
    """List events, newest first. Events are listed while their bodies are kept."""
    kinds = [query["kind"]] if "kind" in query else list(catalogue.EVENT_KINDS)
    return page_of(partial(Event.newest, caller().workspace_id, kinds, query), query, events.represent)


@reads(blueprint, "/events/<event_id>", message_access.EVENTS, EventWithDeliveriesSchema)
def show_event(event_id: str) -> Document:
    """Show an event with its deliveries; once its body is deleted, for as long as these are kept."""
    event = events.find(caller().workspace_id, event_id)
    sent = [deliveries.represent(delivery) for delivery in Delivery.of_event(event.workspace_id, event.id)]
    return {**events.represent(event), "deliveries": sent}


@accepts(blueprint, "POST /events/<event_id>/resend", message_access.EVENTS, DeliverySchema, EventResend, made=True)
def resend_event(body: dict[str, Any], event_id: str) -> Response:
    """Send an event to one endpoint as a new delivery, even if it is not subscribed to the kind."""
    payload = {"event_id": event_id, "endpoint_id": body["endpoint_id"]}
    return accept("deliveries.create", payload, ids.new("dlv"))

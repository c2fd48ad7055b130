"""Webhook endpoints: the addresses that events are sent to."""

from __future__ import annotations

from functools import partial
from typing import Any

from flask import Response
from marshmallow import fields, validate

from app.api.lists import PageQuery, envelope, page
from app.api.parsing.blueprints import Blueprint
from app.api.responses import respond
from app.api.routes import Document, accepts, reads, shows
from app.api.writes import accept, act, is_dry_run, must_exist
from app.domain.bodies.endpoints import EnableBody, EndpointCreate, EndpointPatch, EndpointTest
from app.domain.deliveries import sweeps
from app.domain.deliveries.deliveries import DeliverySchema
from app.domain.deliveries.sweeps import SweepSchema
from app.domain.webhooks import catalogue, endpoints
from app.domain.webhooks.endpoints import EndpointSchema
from app.lib import ids
from app.lib.schemas import OneOf, Period, ResponseBody, StrictBoolean, about, time, time_field
from app.models.endpoints import Endpoint

blueprint = Blueprint("endpoints", __name__, description="The addresses that events are sent to.")


class ResendBody(Period):
    """Selects the deliveries of an endpoint that match all given fields."""

    statuses = fields.List(
        fields.String(validate=validate.OneOf(("failed", "held", "pending", "delivered"))),
        load_default=["failed", "held"],
        validate=validate.Length(1, 4),
        metadata=about(
            "By default failed and held. Of pending ones, those that wait for their retry become due; "
            "those that are due or in progress are left alone. Delivered ones go out as new deliveries."
        ),
    )
    kinds = fields.List(
        fields.String(validate=OneOf(list(catalogue.EVENT_KINDS))),
        validate=validate.Length(1, 100),
        metadata=about("Event kinds; by default all."),
    )
    since = time_field("created at this time or later.")
    until = time_field("created before this time.")
    dry_run = StrictBoolean(metadata=about("Only count the deliveries that would go out."))


class DryRunSchema(ResponseBody):
    dry_run = fields.Boolean()
    count = fields.Integer(metadata=about("How many deliveries would go out."))
    gone = fields.Integer(metadata=about("How many more match but have lost their bodies."))
    statuses = fields.List(fields.String())
    kinds = fields.List(fields.String(), allow_none=True)
    since = time("As given.", allow_none=True)
    until = time("As given.", allow_none=True)


SECRET = fields.String(metadata=about("The signing secret. Shown once; replays do not show it."))


@reads(blueprint, "/webhooks/endpoints", "webhooks", EndpointSchema, PageQuery)
def list_endpoints(query: dict[str, Any]) -> Document:
    """List webhook endpoints, newest first."""
    return page(Endpoint, query, endpoints.represent)


@accepts(blueprint, "POST /webhooks/endpoints", "webhooks", EndpointSchema, EndpointCreate, made=True, secret=SECRET)
def create_endpoint(body: dict[str, Any]) -> Response:
    """Create a webhook endpoint, up to 1,000 in a workspace.

    Only this response shows its signing secret.
    """
    secret = endpoints.new_secret()
    payload = {**body, "sealed_secret": endpoints.seal(secret)}
    return accept("endpoints.create", payload, ids.new("whe"), beside={"secret": secret})


@accepts(blueprint, "POST /webhooks/endpoints/<endpoint_id>/rotate-secret", "webhooks", EndpointSchema, secret=SECRET)
def rotate_secret_of_endpoint(endpoint_id: str) -> Response:
    """Rotate the signing secret. For 24 hours, deliveries are also signed with the previous one."""
    secret = endpoints.new_secret()
    payload = {"sealed_secret": endpoints.seal(secret)}
    return act("endpoints.rotate_secret", endpoint_id, payload, beside={"secret": secret})


@accepts(blueprint, "POST /webhooks/endpoints/<endpoint_id>/test", "webhooks", DeliverySchema, EndpointTest)
def test_endpoint(body: dict[str, Any], endpoint_id: str) -> Response:
    """Send a sample of an event kind to this endpoint only, even if it is not subscribed to the kind."""
    payload = {**body, "endpoint_id": endpoint_id}
    return accept("endpoints.test", payload, check=partial(must_exist, "endpoint", endpoint_id))


shows(blueprint, "endpoint", "webhooks", EndpointSchema, "Show a webhook endpoint.")


@accepts(blueprint, "PATCH /webhooks/endpoints/<endpoint_id>", "webhooks", EndpointSchema, EndpointPatch)
def update_endpoint(body: dict[str, Any], endpoint_id: str) -> Response:
    """Change the given fields of a webhook endpoint."""
    return act("endpoints.update", endpoint_id, body)


@accepts(blueprint, "DELETE /webhooks/endpoints/<endpoint_id>", "webhooks", None)
def delete_endpoint(endpoint_id: str) -> Response:
    """Delete a webhook endpoint; its unfinished deliveries are cancelled."""
    return act("endpoints.delete", endpoint_id)


@accepts(
    blueprint, "POST /webhooks/endpoints/<endpoint_id>/enable", "webhooks", EndpointSchema, EnableBody, required=False
)
def enable_endpoint(body: dict[str, Any], endpoint_id: str) -> Response:
    """Enable a stopped endpoint and reset its failure count."""
    return act("endpoints.enable", endpoint_id, body)


@accepts(
    blueprint,
    "POST /webhooks/endpoints/<endpoint_id>/resend",
    "webhooks",
    SweepSchema,
    ResendBody,
    made=True,
    required=False,
)
@blueprint.alt_response(200, schema=envelope(DryRunSchema), description="The result of a dry run.", success=True)
def resend_deliveries(body: dict[str, Any], endpoint_id: str) -> Response:
    """Resend many deliveries, oldest first, in a worker. Read the sweep again to follow its progress."""
    if is_dry_run(body):
        must_exist("endpoint", endpoint_id)
        count, gone = sweeps.count_resendable(endpoint_id, **body)
        filters = {name: body.get(name) for name in endpoints.FILTERS}
        return respond(200, {"data": {"dry_run": True, "count": count, "gone": gone, **filters}})
    payload = ResendBody.as_text(body) | {"endpoint_id": endpoint_id}
    return accept("endpoints.resend", payload, ids.new("swp"), partial(must_exist, "endpoint", endpoint_id))

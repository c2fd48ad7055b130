"""Webhook endpoints."""

from __future__ import annotations

from typing import Any

from flask import Response
from marshmallow import ValidationError, fields, validate, validates, validates_schema

from app.api import callbacks
from app.api.authentication import authorize, caller
from app.api.deliveries import DeliverySchema
from app.api.jobs import accepts_write
from app.api.lists import PageQuery, collection, envelope, page
from app.api.parsing import STORABLE, Blueprint, Claim, Schema, Time
from app.api.responses import respond, time
from app.api.sweeps import SweepSchema
from app.api.writes import accept, must_exist, once_key
from app.config import settings
from app.domain import catalogue, endpoints, sweeps
from app.lib import addresses, ids
from app.models.endpoints import Endpoint

blueprint = Blueprint("endpoints", __name__, description="The addresses that events go to.")


class EndpointFields(Schema):
    """`address` and `events` are required to make one, and may be left out of a change."""

    address = fields.String(
        metadata={
            "description": "https only, without a user name, at most 2,048 characters, not a private address.",
            "format": "uri",
            "pattern": "^https://",
            "maxLength": addresses.LONGEST_ADDRESS,
        }
    )
    events = fields.List(
        fields.String(metadata={"enum": ["*", *catalogue.KINDS]}),
        validate=validate.Length(1, 100),
        metadata={"description": "Event kinds, at least one; `*` for all."},
    )
    description = fields.String(allow_none=True, validate=validate.Length(max=500))

    @validates("address")
    def may_be_dialled(self, value: str, data_key: str) -> None:
        if why := addresses.check_address(value, settings().webhook_allowed_networks):
            raise ValidationError(why)

    @validates("events")
    def are_known(self, value: list[str], data_key: str) -> None:
        unknown = {
            number: [f"There is no event kind '{kind}'. webhooks/events lists them."]
            for number, kind in enumerate(value)
            if kind != "*" and kind not in catalogue.KINDS
        }
        if unknown:
            raise ValidationError(unknown)


class EndpointCreate(EndpointFields):
    class Meta(EndpointFields.Meta):
        # Declared once, above.
        pass

    def on_bind_field(self, field_name: str, field_obj: fields.Field[Any]) -> None:
        field_obj.required = field_name in ("address", "events")


class EndpointPatch(EndpointFields):
    pass


class EndpointTest(Schema):
    kind = fields.String(
        required=True,
        validate=validate.OneOf(
            list(catalogue.KINDS), error="There is no event kind '{input}'. webhooks/events lists them."
        ),
        metadata={"description": "The kind whose sample is sent.", "example": "contact.created"},
    )


class EndpointSchema(Schema):
    id = fields.String(required=True)
    address = fields.String(required=True)
    events = fields.List(fields.String(), required=True)
    description = fields.String(required=True, allow_none=True)
    state = fields.String(required=True, validate=validate.OneOf(["active", "stopped"]))
    stop_reason = fields.String(required=True, allow_none=True)
    stopped_at = time("When it was stopped.", allow_none=True)
    consecutive_failures = fields.Integer(required=True)
    created_at = time("When it was made.")


class EnableBody(Schema):
    release_held = Claim(metadata={"description": "Send what was held meanwhile, too; false without it."})


class ResendBody(Schema):
    """Which deliveries: all that are given must hold."""

    statuses = fields.List(
        fields.String(validate=validate.OneOf(("failed", "held", "delivered"))),
        load_default=["failed", "held"],
        validate=validate.Length(1, 3),
        metadata={"description": "Without it failed and held; delivered ones go out as new deliveries."},
    )
    kinds = fields.List(
        fields.String(validate=validate.OneOf(list(catalogue.KINDS))),
        validate=validate.Length(1, 100),
        metadata={"description": "Event kinds; without it all."},
    )
    since = Time(validate=STORABLE, metadata={"description": "RFC 3339; made at that time or later."})
    until = Time(validate=STORABLE, metadata={"description": "RFC 3339; made before that time."})
    dry_run = Claim(metadata={"description": "Say how many would go out, and do nothing."})

    @validates_schema
    def begins_before_it_ends(self, data: dict[str, Any], **_: Any) -> None:
        if "since" in data and "until" in data and data["since"] >= data["until"]:
            raise ValidationError("This must be after since.", "until")


class DryRunSchema(Schema):
    dry_run = fields.Boolean(required=True)
    count = fields.Integer(required=True, metadata={"description": "How many would go out."})
    gone = fields.Integer(required=True, metadata={"description": "How many more match, but their bodies are gone."})
    statuses = fields.List(fields.String(), required=True)
    kinds = fields.List(fields.String(), required=True, allow_none=True)
    since = time("As given.", allow_none=True)
    until = time("As given.", allow_none=True)


_SECRET = fields.String(metadata={"description": "The signing secret. Shown once; a replay does not show it."})


@collection(blueprint, "/webhooks/endpoints")
@authorize("webhooks")
@blueprint.arguments(PageQuery, location="query")
@blueprint.response(200, envelope(EndpointSchema, many=True))
def list_endpoints(query: dict[str, Any]) -> Response:
    """List webhook endpoints, newest first."""
    found = Endpoint.in_workspace(caller().workspace_id)
    return respond(200, page(found, Endpoint, query, endpoints.represent))


@blueprint.route("/workspaces/<workspace>/webhooks/endpoints", methods=["POST"])
@authorize("webhooks")
@blueprint.arguments(EndpointCreate)
@accepts_write(EndpointSchema, made=True, secret=_SECRET)
@blueprint.doc(callbacks=callbacks.delivery())
def create_endpoint(body: dict[str, Any]) -> Response:
    """Make a webhook endpoint. Its signing secret is in this answer, and never again."""
    secret = endpoints.new_secret()
    payload = {**body, "sealed_secret": endpoints.seal(secret)}
    return accept("endpoints.create", payload, ids.new("whe"), beside={"secret": secret})


@blueprint.route("/workspaces/<workspace>/webhooks/endpoints/<endpoint_id>/rotate-secret", methods=["POST"])
@authorize("webhooks")
@accepts_write(EndpointSchema, secret=_SECRET)
def rotate_secret_of_endpoint(endpoint_id: str) -> Response:
    """Give the endpoint a new signing secret. For 24 hours deliveries are signed with the one before it too."""
    secret = endpoints.new_secret()
    return accept(
        "endpoints.rotate_secret",
        {"sealed_secret": endpoints.seal(secret)},
        endpoint_id,
        check=lambda: must_exist("endpoint", endpoint_id),
        beside={"secret": secret},
    )


@blueprint.route("/workspaces/<workspace>/webhooks/endpoints/<endpoint_id>/test", methods=["POST"])
@authorize("webhooks")
@blueprint.arguments(EndpointTest)
@accepts_write(DeliverySchema)
def test_endpoint(body: dict[str, Any], endpoint_id: str) -> Response:
    """Send a sample of a kind to this endpoint, and to no other, whether or not it wants that kind."""
    payload = {**body, "endpoint_id": endpoint_id}
    return accept("endpoints.test", payload, check=lambda: must_exist("endpoint", endpoint_id))


@blueprint.route("/workspaces/<workspace>/webhooks/endpoints/<endpoint_id>", methods=["GET"])
@authorize("webhooks")
@blueprint.response(200, envelope(EndpointSchema))
def show_endpoint(endpoint_id: str) -> Response:
    """Show a webhook endpoint."""
    return respond(200, {"data": endpoints.represent(endpoints.find(caller().workspace_id, endpoint_id))})


@blueprint.route("/workspaces/<workspace>/webhooks/endpoints/<endpoint_id>", methods=["PATCH"])
@authorize("webhooks")
@blueprint.arguments(EndpointPatch)
@accepts_write(EndpointSchema)
def update_endpoint(body: dict[str, Any], endpoint_id: str) -> Response:
    """Change the fields that are given."""
    return _change("endpoints.update", body, endpoint_id)


@blueprint.route("/workspaces/<workspace>/webhooks/endpoints/<endpoint_id>", methods=["DELETE"])
@authorize("webhooks")
@accepts_write()
def delete_endpoint(endpoint_id: str) -> Response:
    """Delete a webhook endpoint; what is still on its way to it is cancelled."""
    return _change("endpoints.delete", {}, endpoint_id)


@blueprint.route("/workspaces/<workspace>/webhooks/endpoints/<endpoint_id>/enable", methods=["POST"])
@authorize("webhooks")
@blueprint.arguments(EnableBody, required=False)
@accepts_write(EndpointSchema)
def enable_endpoint(body: dict[str, Any], endpoint_id: str) -> Response:
    """Let deliveries go to an endpoint again that was stopped; its failures are forgotten."""
    return _change("endpoints.enable", body, endpoint_id)


@blueprint.route("/workspaces/<workspace>/webhooks/endpoints/<endpoint_id>/resend", methods=["POST"])
@authorize("webhooks")
@blueprint.arguments(ResendBody, required=False)
@accepts_write(SweepSchema, made=True)
@blueprint.alt_response(200, schema=envelope(DryRunSchema), description="What a dry run found.", success=True)
def resend_deliveries(body: dict[str, Any], endpoint_id: str) -> Response:
    """Send many deliveries once more, oldest first. A worker does it; the sweep in the answer tells how far it is."""
    is_dry = body.pop("dry_run", False)
    if is_dry:
        once_key()  # stands for nothing here, and is refused all the same where it is none
        must_exist("endpoint", endpoint_id)
        count, gone = sweeps.count_resendable(endpoint_id, **body)
        filters = {name: body.get(name) for name in endpoints.FILTERS}
        return respond(200, {"data": {"dry_run": True, "count": count, "gone": gone, **filters}})
    # Not as JSON would say them, which is by the millisecond.
    times = {name: body[name].isoformat() for name in body.keys() & {"since", "until"}}
    return _accept("endpoints.resend", body | times | {"endpoint_id": endpoint_id}, endpoint_id, ids.new("swp"))


def _change(kind: str, payload: dict[str, Any], endpoint_id: str) -> Response:
    return _accept(kind, payload, endpoint_id, endpoint_id)


def _accept(kind: str, payload: dict[str, Any], endpoint_id: str, resource_id: str) -> Response:
    return accept(kind, payload, resource_id, check=lambda: must_exist("endpoint", endpoint_id))

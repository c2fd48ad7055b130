"""Sweeps: long changes over the deliveries of an endpoint, and how far they are."""

from __future__ import annotations

from typing import Any

from flask import Response
from marshmallow import fields, validate

from app.api.authentication import authorize, caller
from app.api.lists import PageQuery, collection, envelope, page
from app.api.parsing import Blueprint, Schema
from app.api.responses import respond, time
from app.domain import sweeps
from app.models.sweeps import Sweep

blueprint = Blueprint("sweeps", __name__, description="Long changes over the deliveries of an endpoint.")

ACTIONS = tuple(sweeps.WANTED_IN)


class SweepSchema(Schema):
    id = fields.String(required=True)
    endpoint_id = fields.String(required=True)
    action = fields.String(required=True, validate=validate.OneOf(ACTIONS))
    status = fields.String(required=True, validate=validate.OneOf(["running", "finished"]))
    count = fields.Integer(
        required=True,
        allow_none=True,
        metadata={"description": "How many matched when it began; counted for a resend."},
    )
    changed = fields.Integer(required=True, metadata={"description": "How many it has changed by now."})
    skipped = fields.Integer(
        required=True, metadata={"description": "How many it left, because their bodies are gone."}
    )
    statuses = fields.List(fields.String(), required=True)
    kinds = fields.List(fields.String(), required=True, allow_none=True)
    since = time("It is about deliveries made at that time or later.", allow_none=True)
    until = time("It is about deliveries made before that time.", allow_none=True)
    created_at = time("When it began.")
    finished_at = time("When it ended.", allow_none=True)


class SweepQuery(PageQuery):
    endpoint_id = fields.String()
    action = fields.String(validate=validate.OneOf(ACTIONS))


@collection(blueprint, "/webhooks/sweeps")
@authorize("webhooks")
@blueprint.arguments(SweepQuery, location="query")
@blueprint.response(200, envelope(SweepSchema, many=True))
def list_sweeps(query: dict[str, Any]) -> Response:
    """List sweeps, newest first: resends and releases that were asked for, and what follows a stop or a deletion."""
    found = Sweep.matching(caller().workspace_id, query)
    return respond(200, page(found, Sweep, query, sweeps.represent))


@blueprint.route("/workspaces/<workspace>/webhooks/sweeps/<sweep_id>", methods=["GET"])
@authorize("webhooks")
@blueprint.response(200, envelope(SweepSchema))
def show_sweep(sweep_id: str) -> Response:
    """Show a sweep and how far it is."""
    return respond(200, {"data": sweeps.represent(sweeps.find(caller().workspace_id, sweep_id))})

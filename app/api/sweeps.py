"""Sweeps: bulk changes to the deliveries of an endpoint, and their progress."""

from __future__ import annotations

from typing import Any

from flask import Response
from marshmallow import fields, validate

from app.api.authentication import authorize, caller
from app.api.lists import PageQuery, envelope, page
from app.api.parsing.blueprints import Blueprint
from app.api.responses import respond
from app.domain.deliveries import sweeps
from app.lib.base_schemas import ResponseBody
from app.lib.fields import time
from app.models.sweeps import Sweep

blueprint = Blueprint("sweeps", __name__, description="Bulk changes to the deliveries of an endpoint.")

ACTIONS = tuple(sweeps.WANTED_IN)


class SweepSchema(ResponseBody):
    id = fields.String()
    endpoint_id = fields.String()
    action = fields.String(validate=validate.OneOf(ACTIONS))
    status = fields.String(validate=validate.OneOf(["running", "finished"]))
    count = fields.Integer(
        allow_none=True, metadata={"description": "How many matched when the sweep began; only for a resend."}
    )
    changed = fields.Integer(metadata={"description": "How many deliveries have changed so far."})
    skipped = fields.Integer(metadata={"description": "How many were left because their bodies are gone."})
    statuses = fields.List(fields.String())
    kinds = fields.List(fields.String(), allow_none=True)
    since = time("Only deliveries created at this time or later.", allow_none=True)
    until = time("Only deliveries created before this time.", allow_none=True)
    created_at = time("When the sweep began.")
    finished_at = time("When the sweep ended.", allow_none=True)


class SweepQuery(PageQuery):
    endpoint_id = fields.String()
    action = fields.String(validate=validate.OneOf(ACTIONS))


@blueprint.route("/workspaces/<workspace>/webhooks/sweeps", methods=["GET"])
@authorize("webhooks")
@blueprint.arguments(SweepQuery)
@blueprint.response(200, envelope(SweepSchema, many=True))
def list_sweeps(query: dict[str, Any]) -> Response:
    """List sweeps, newest first: requested resends and releases, and those that follow a stop or a deletion."""
    found = Sweep.matching(caller().workspace_id, query)
    return respond(200, page(found, Sweep, query, sweeps.represent))


@blueprint.route("/workspaces/<workspace>/webhooks/sweeps/<sweep_id>", methods=["GET"])
@authorize("webhooks")
@blueprint.response(200, envelope(SweepSchema))
def show_sweep(sweep_id: str) -> Response:
    """Show a sweep and its progress."""
    return respond(200, {"data": sweeps.represent(sweeps.find(caller().workspace_id, sweep_id))})

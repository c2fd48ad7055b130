"""Sweeps: bulk changes to an endpoint's deliveries, and their progress."""

from __future__ import annotations

from typing import Any

from flask import Response
from marshmallow import fields, validate

from app.api.authentication import authorize, caller
from app.api.lists import PageQuery, envelope, page
from app.api.parsing.blueprints import Blueprint
from app.api.responses import respond
from app.domain.deliveries import sweeps
from app.domain.deliveries.sweeps import ACTIONS, SweepSchema
from app.models.sweeps import Sweep

blueprint = Blueprint("sweeps", __name__, description="Bulk changes to the deliveries of an endpoint.")


class SweepQuery(PageQuery):
    endpoint_id = fields.String()
    action = fields.String(validate=validate.OneOf(ACTIONS))


@blueprint.route("/workspaces/<workspace>/webhooks/sweeps", methods=["GET"])
@authorize("webhooks")
@blueprint.arguments(SweepQuery)
@blueprint.response(200, envelope(SweepSchema, many=True))
def list_sweeps(query: dict[str, Any]) -> Response:
    """List sweeps, newest first.

    A sweep resends or releases deliveries on request, or follows the stop or deletion of an endpoint.
    """
    found = Sweep.matching(caller().workspace_id, query)
    return respond(200, page(found, Sweep, query, sweeps.represent))


@blueprint.route("/workspaces/<workspace>/webhooks/sweeps/<sweep_id>", methods=["GET"])
@authorize("webhooks")
@blueprint.response(200, envelope(SweepSchema))
def show_sweep(sweep_id: str) -> Response:
    """Show a sweep and its progress."""
    return respond(200, {"data": sweeps.represent(Sweep.find(caller().workspace_id, sweep_id))})

"""Sweeps: bulk changes to an endpoint's deliveries, and their progress."""

from __future__ import annotations

from typing import Any

from marshmallow import fields, validate

from app.api.lists import PageQuery, page
from app.api.parsing.blueprints import Blueprint
from app.api.routes import Document, reads, shows
from app.domain.deliveries import sweeps
from app.domain.deliveries.sweeps import ACTIONS, SweepSchema
from app.models.sweeps import Sweep

blueprint = Blueprint("sweeps", __name__, description="Bulk changes to the deliveries of an endpoint.")


class SweepQuery(PageQuery):
    endpoint_id = fields.String()
    action = fields.String(validate=validate.OneOf(ACTIONS))


@reads(blueprint, "/webhooks/sweeps", "webhooks", SweepSchema, SweepQuery)
def list_sweeps(query: dict[str, Any]) -> Document:
    """List sweeps, newest first.

    A sweep resends or releases deliveries on request, or follows the stop or deletion of an endpoint.
    """
    return page(Sweep, query, sweeps.represent)


shows(blueprint, "sweep", "webhooks", SweepSchema, "Show a sweep and its progress.")

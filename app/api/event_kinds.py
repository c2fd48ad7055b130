"""The catalogue of event kinds."""

from __future__ import annotations

from flask import Response
from marshmallow import fields

from app.api.authentication import authorize, caller
from app.api.lists import collection
from app.api.parsing import Blueprint, Schema
from app.api.responses import respond
from app.domain import catalogue

blueprint = Blueprint("event kinds", __name__, description="What webhooks tell of.")


class EventKindSchema(Schema):
    kind = fields.String(required=True)
    description = fields.String(required=True)
    sample = fields.Dict(required=True, metadata={"description": "A whole delivery body, as a receiver gets it."})


class Catalogue(Schema):
    data = fields.List(fields.Nested(EventKindSchema), required=True)


@collection(blueprint, "/webhooks/events")
@authorize(None)
@blueprint.response(200, Catalogue)
def list_event_kinds() -> Response:
    """List every event kind, each with a sample of what is delivered."""
    return respond(200, {"data": catalogue.represent(caller().workspace_id)})

"""The catalogue of event kinds."""

from __future__ import annotations

from flask import Response
from marshmallow import fields

from app.api.authentication import authorize, caller
from app.api.parsing.blueprints import Blueprint
from app.api.responses import respond
from app.domain.webhooks import catalogue
from app.lib.schemas import ResponseBody

blueprint = Blueprint("event kinds", __name__, description="The kinds of events that webhooks report.")


class EventKindSchema(ResponseBody):
    kind = fields.String()
    description = fields.String()
    # Not `allOf`: with that, openapi-typescript drops `kind` from the type.
    sample = fields.Raw(
        metadata={"description": "A complete delivery body.", "$ref": "#/components/schemas/WebhookBody"}
    )


class Catalogue(ResponseBody):
    """All event kinds; never more than a page."""

    data = fields.List(fields.Nested(EventKindSchema))


@blueprint.route("/workspaces/<workspace>/webhooks/events", methods=["GET"])
@authorize(None)
@blueprint.response(200, Catalogue)
def list_event_kinds() -> Response:
    """List all event kinds, each with a sample delivery."""
    return respond(200, {"data": catalogue.represent(caller().workspace_id)})

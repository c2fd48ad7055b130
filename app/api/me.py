"""`auth/me`: shows any valid token its own name and workspace, as a connection test."""

from __future__ import annotations

from flask import Response
from marshmallow import fields, validate

from app.api.authentication import authorize, caller
from app.api.lists import envelope
from app.api.parsing.blueprints import Blueprint
from app.api.responses import respond, time
from app.api.schemas import ResponseBody
from app.domain.people import tokens

blueprint = Blueprint("me", __name__, description="The token and its workspace.")


class TokenSchema(ResponseBody):
    id = fields.String(required=True)
    name = fields.String(required=True)
    restrictions = fields.List(
        fields.String(validate=validate.OneOf(tokens.RESTRICTIONS)),
        required=True,
        allow_none=True,
        metadata={"description": "Null: the token is unrestricted."},
    )
    expires_at = time("When the token expires.", allow_none=True)
    last_used_at = time("When the token was last used, to the minute.", allow_none=True)


class WorkspaceSchema(ResponseBody):
    id = fields.String(required=True)
    name = fields.String(required=True)


class MeSchema(ResponseBody):
    token = fields.Nested(TokenSchema, required=True)
    workspace = fields.Nested(WorkspaceSchema, required=True)


@blueprint.route("/auth/me", methods=["GET"])
@authorize(None)
@blueprint.response(200, envelope(MeSchema))
def show_me() -> Response:
    """Show the token and its workspace."""
    return respond(200, {"data": tokens.represent(caller())})

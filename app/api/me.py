"""`auth/me`: shows a token its own name and workspace, as a connection test."""

from __future__ import annotations

from flask import Response
from marshmallow import fields, validate

from app.api.authentication import authorize, caller
from app.api.lists import envelope
from app.api.parsing.blueprints import Blueprint
from app.api.responses import respond
from app.domain.people import tokens
from app.lib.schemas import ResponseBody, about, time

blueprint = Blueprint("me", __name__, description="The token and its workspace.")


class TokenSchema(ResponseBody):
    id = fields.String()
    name = fields.String()
    restrictions = fields.List(
        fields.String(validate=validate.OneOf(tokens.RESTRICTIONS)),
        allow_none=True,
        metadata=about("Null: the token is unrestricted."),
    )
    expires_at = time("When the token expires.", allow_none=True)
    last_used_at = time("When the token was last used, to the minute.", allow_none=True)


class WorkspaceSchema(ResponseBody):
    id = fields.String()
    name = fields.String()


class MeSchema(ResponseBody):
    token = fields.Nested(TokenSchema)
    workspace = fields.Nested(WorkspaceSchema)


@blueprint.route("/auth/me", methods=["GET"])
@authorize(None)
@blueprint.response(200, envelope(MeSchema))
def show_me() -> Response:
    """Show the token and its workspace."""
    who = caller()
    token = TokenSchema.of(who, id=who.token_id, name=who.token_name)
    return respond(200, {"data": {"token": token, "workspace": {"id": who.workspace_id, "name": who.workspace_name}}})

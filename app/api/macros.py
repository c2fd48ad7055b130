"""Macros: several actions in a conversation at once."""

from __future__ import annotations

from functools import partial
from typing import Any

from flask import Response
from marshmallow import fields, validate

from app.api.authentication import authorize, caller, require
from app.api.jobs import accepts_write
from app.api.lists import PageQuery, envelope, page_of
from app.api.parsing.blueprints import Blueprint
from app.api.responses import respond
from app.api.writes import accept, act, must_exist
from app.domain.bodies.macros import MacroCreate, MacroPatch, MacroUse
from app.domain.conversations.conversations import ConversationSchema
from app.domain.macros import macros
from app.domain.macros.macros import MacroSchema
from app.lib import ids
from app.lib.schemas import about
from app.models.conversations import Conversation
from app.models.macros import Macro

blueprint = Blueprint("macros", __name__, description="Several actions in a conversation at once.")


class MacroQuery(PageQuery):
    q = fields.String(validate=validate.Length(1, 100), metadata=about("Those whose name has this.", example="ref"))


@blueprint.route("/workspaces/<workspace>/macros", methods=["GET"])
@authorize("inbox")
@blueprint.arguments(MacroQuery)
@blueprint.response(200, envelope(MacroSchema, many=True))
def list_macros(query: dict[str, Any]) -> Response:
    """List macros, newest first."""
    find = partial(Macro.newest, caller().workspace_id, query.get("q"))
    return respond(200, page_of(find, query, macros.represent))


@blueprint.route("/workspaces/<workspace>/macros", methods=["POST"])
@authorize("inbox")
@blueprint.arguments(MacroCreate)
@accepts_write(MacroSchema, made=True)
def create_macro(body: dict[str, Any]) -> Response:
    """Create a macro, up to 500 in a workspace.

    A macro that starts an automation also needs access to `automations`.
    """
    _require(body)
    return accept("macros.create", body, ids.new("mac"))


@blueprint.route("/workspaces/<workspace>/macros/<macro_id>", methods=["GET"])
@authorize("inbox")
@blueprint.response(200, envelope(MacroSchema))
def show_macro(macro_id: str) -> Response:
    """Show a macro."""
    return respond(200, {"data": macros.represent(Macro.find(caller().workspace_id, macro_id))})


@blueprint.route("/workspaces/<workspace>/macros/<macro_id>", methods=["PATCH"])
@authorize("inbox")
@blueprint.arguments(MacroPatch)
@accepts_write(MacroSchema)
def update_macro(body: dict[str, Any], macro_id: str) -> Response:
    """Change the given fields of a macro."""
    _require(body)
    return act("macros.update", macro_id, body)


@blueprint.route("/workspaces/<workspace>/macros/<macro_id>", methods=["DELETE"])
@authorize("inbox")
@accepts_write()
def delete_macro(macro_id: str) -> Response:
    """Delete a macro."""
    return act("macros.delete", macro_id)


@blueprint.route("/workspaces/<workspace>/conversations/<conversation_id>/macros/<macro_id>", methods=["POST"])
@authorize("inbox")
@blueprint.arguments(MacroUse, required=False)
@accepts_write(ConversationSchema)
def apply_macro(body: dict[str, Any], conversation_id: str, macro_id: str) -> Response:
    """Take all actions of a macro in a conversation, or none if one of them is refused.

    Then the write fails with `conflict`, whose `pointer` is the action and whose `code` says why.
    """
    found = Conversation.find(caller().workspace_id, conversation_id)
    payload = body | {"macro_id": macro_id, "contact_id": found.contact_id}
    return accept("macros.apply", payload, found.id, partial(must_exist, "macro", macro_id))


def _require(body: dict[str, Any]) -> None:
    if macros.starts_automations(body):
        require("automations")

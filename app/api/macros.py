"""Macros: several actions in a conversation at once."""

from __future__ import annotations

from functools import partial
from typing import Any

from flask import Response
from marshmallow import fields, validate

from app.api.authentication import caller, require
from app.api.lists import PageQuery, page_of
from app.api.parsing.blueprints import Blueprint
from app.api.routes import Document, accepts, reads, shows
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


@reads(blueprint, "/macros", "inbox", MacroSchema, MacroQuery)
def list_macros(query: dict[str, Any]) -> Document:
    """List macros, newest first."""
    find = partial(Macro.newest, caller().workspace_id, query.get("q"))
    return page_of(find, query, macros.represent)


@accepts(blueprint, "POST /macros", "inbox", MacroSchema, MacroCreate, made=True)
def create_macro(body: dict[str, Any]) -> Response:
    """Create a macro, up to 500 in a workspace.

    A macro that starts an automation also needs access to `automations`.
    """
    _require(body)
    return accept("macros.create", body, ids.new("mac"))


shows(blueprint, "macro", "inbox", MacroSchema, "Show a macro.")


@accepts(blueprint, "PATCH /macros/<macro_id>", "inbox", MacroSchema, MacroPatch)
def update_macro(body: dict[str, Any], macro_id: str) -> Response:
    """Change the given fields of a macro."""
    _require(body)
    return act("macros.update", macro_id, body)


@accepts(blueprint, "DELETE /macros/<macro_id>", "inbox", None)
def delete_macro(macro_id: str) -> Response:
    """Delete a macro."""
    return act("macros.delete", macro_id)


@accepts(
    blueprint,
    "POST /conversations/<conversation_id>/macros/<macro_id>",
    "inbox",
    ConversationSchema,
    MacroUse,
    required=False,
)
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

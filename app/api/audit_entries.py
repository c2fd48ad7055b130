"""The audit log: who did what, such as changes to endpoints and deliveries."""

from __future__ import annotations

from typing import Any

from flask import Response
from marshmallow import fields, validate

from app.api.authentication import authorize, caller
from app.api.lists import PageQuery, envelope, page
from app.api.parsing.blueprints import Blueprint
from app.api.responses import respond
from app.domain.jobs.jobs import KINDS
from app.domain.work import audit
from app.lib.base_schemas import ResponseBody
from app.lib.fields import time
from app.models.audit_entries import AuditEntry

blueprint = Blueprint("audit log", __name__, description="Who changed endpoints and deliveries, and how.")

ACTIONS = [name for name, kind in KINDS.items() if kind.restriction == "webhooks"]


class ActorSchema(ResponseBody):
    type = fields.String(validate=validate.OneOf(["token", "member", "support", "command"]))
    id = fields.String(allow_none=True, metadata={"description": "null for a command."})


class TargetSchema(ResponseBody):
    type = fields.String()
    id = fields.String()


class AuditEntrySchema(ResponseBody):
    id = fields.String()
    action = fields.String(
        metadata={"description": "The job's kind, or what was done on a page.", "example": "endpoints.enable"}
    )
    actor = fields.Nested(ActorSchema)
    target = fields.Nested(TargetSchema)
    detail = fields.Dict(metadata={"description": "The request; its members depend on the action."})
    reason = fields.String(
        allow_none=True,
        metadata={"description": "Why support staff did it; null for all others.", "example": "They asked us to."},
    )
    ticket = fields.String(allow_none=True, metadata={"description": "Their ticket for it.", "example": "T-1042"})
    created_at = time("When the change took effect.")


class AuditEntryQuery(PageQuery):
    endpoint_id = fields.String(metadata={"description": "Only changes to this endpoint and its deliveries."})
    action = fields.String(validate=validate.OneOf(ACTIONS))


@blueprint.route("/workspaces/<workspace>/webhooks/audit-log", methods=["GET"])
@authorize("webhooks")
@blueprint.arguments(AuditEntryQuery)
@blueprint.response(200, envelope(AuditEntrySchema, many=True))
def list_audit_entries(query: dict[str, Any]) -> Response:
    """List changes to endpoints and deliveries, newest first."""
    found = AuditEntry.matching(caller().workspace_id, query)
    return respond(200, page(found, AuditEntry, query, audit.represent))

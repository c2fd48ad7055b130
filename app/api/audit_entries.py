"""The audit log."""

from __future__ import annotations

from typing import Any

from flask import Response
from marshmallow import fields, validate

from app.api.authentication import authorize, caller
from app.api.lists import PageQuery, collection, envelope, page
from app.api.parsing import Blueprint, Schema
from app.api.responses import respond, time
from app.domain import audit
from app.domain.jobs import KINDS
from app.models.audit_entries import AuditEntry

blueprint = Blueprint("audit log", __name__, description="Who asked for what.")

ACTIONS = [name for name, kind in KINDS.items() if kind.restriction == "webhooks"]


class ActorSchema(Schema):
    type = fields.String(required=True, validate=validate.OneOf(["token", "member", "command"]))
    id = fields.String(required=True, allow_none=True, metadata={"description": "null for a command."})


class TargetSchema(Schema):
    type = fields.String(required=True)
    id = fields.String(required=True)


class AuditEntrySchema(Schema):
    id = fields.String(required=True)
    action = fields.String(
        required=True, metadata={"description": "The kind of the job.", "example": "endpoints.enable"}
    )
    actor = fields.Nested(ActorSchema, required=True)
    target = fields.Nested(TargetSchema, required=True)
    detail = fields.Dict(required=True, metadata={"description": "What was asked for; differs with the action."})
    created_at = time("When it took effect.")


class AuditEntryQuery(PageQuery):
    endpoint_id = fields.String(metadata={"description": "What was done to that endpoint or to its deliveries."})
    action = fields.String(validate=validate.OneOf(ACTIONS))


@collection(blueprint, "/webhooks/audit-log")
@authorize("webhooks")
@blueprint.arguments(AuditEntryQuery, location="query")
@blueprint.response(200, envelope(AuditEntrySchema, many=True))
def list_audit_entries(query: dict[str, Any]) -> Response:
    """List what was done to endpoints and deliveries, and by whom, newest first."""
    found = AuditEntry.matching(caller().workspace_id, query)
    return respond(200, page(found, AuditEntry, query, audit.represent))

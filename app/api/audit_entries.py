"""The audit log: who did what in the workspace."""

from __future__ import annotations

from typing import Any

from flask import Response
from marshmallow import fields, validate

from app.api.authentication import authorize, caller
from app.api.lists import PageQuery, envelope, page
from app.api.parsing.blueprints import Blueprint
from app.api.responses import respond
from app.domain.verbs import VERBS
from app.domain.work import audit
from app.domain.work.audit import AuditEntrySchema
from app.lib.schemas import about
from app.models.audit_entries import AuditEntry

blueprint = Blueprint("audit log", __name__, description="Who did what in the workspace.")

ACTIONS = [name for name, kind in VERBS.items() if kind.restriction == "webhooks"]


class AuditEntryQuery(PageQuery):
    endpoint_id = fields.String(metadata=about("Only changes to this endpoint and its deliveries."))
    action = fields.String(validate=validate.OneOf(ACTIONS))


@blueprint.route("/workspaces/<workspace>/webhooks/audit-log", methods=["GET"])
@authorize("webhooks")
@blueprint.arguments(AuditEntryQuery)
@blueprint.response(200, envelope(AuditEntrySchema, many=True))
def list_audit_entries(query: dict[str, Any]) -> Response:
    """List the entries of the audit log, newest first."""
    found = AuditEntry.matching(caller().workspace_id, query)
    return respond(200, page(found, AuditEntry, query, audit.represent))

"""The audit log: who did what in the workspace."""

from __future__ import annotations

from typing import Any

from marshmallow import fields, validate

from app.api.lists import PageQuery, page
from app.api.parsing.blueprints import Blueprint
from app.api.routes import Document, reads
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


@reads(blueprint, "/webhooks/audit-log", "webhooks", AuditEntrySchema, AuditEntryQuery)
def list_audit_entries(query: dict[str, Any]) -> Document:
    """List the entries of the audit log, newest first."""
    return page(AuditEntry, query, audit.represent)

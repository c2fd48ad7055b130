"""The audit log of a workspace: who did what, and as support, why."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, Response, render_template

from app.domain.work import audit
from app.models.audit_entries import AuditEntry
from app.web import lists
from app.web.access import page, workspace_id

blueprint = Blueprint("audit_pages", __name__, url_prefix="/workspaces/<workspace>/settings/audit")


@blueprint.get("")
@page("audit.see")
def index() -> str | Response:
    """The entries, newest first, as a page or as a file."""
    filters = lists.filters("action", "target")
    found = _matching(filters)
    if lists.wanted_format():
        newest = list(found.order_by(AuditEntry.id.desc()).limit(lists.MOST_EXPORTED))
        return lists.file_of([_row(each) for each in newest], "audit-log")
    shown = lists.page_of(found, AuditEntry)
    return render_template(
        "audit/index.html",
        page=shown,
        filters=filters,
        chips=[(name.capitalize(), text, lists.address(**{name: None})) for name, text in filters.items()],
        names=audit.names_of(workspace_id(), [each.actor_id for each in shown.rows if each.actor_id]),
        address=lists.address,
    )


def _matching(filters: dict[str, str]) -> Any:
    found = AuditEntry.in_workspace(workspace_id())
    if "action" in filters:
        found = found.where(AuditEntry.action == filters["action"])
    if "target" in filters:
        found = found.where(AuditEntry.target_id == filters["target"])
    return found


def _row(entry: AuditEntry) -> dict[str, Any]:
    shown = audit.represent(entry)
    actor, target = shown.pop("actor"), shown.pop("target")
    return {
        **shown,
        "actor_type": actor["type"],
        "actor": actor["id"],
        "target_type": target["type"],
        "target": target["id"],
    }

"""The audit log of all workspaces, for staff: who did what, where and, as support, why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from flask import Blueprint, Response, render_template

from app.domain.work import audit, audit_sentences
from app.lib import ids
from app.models.audit_entries import AuditEntry
from app.models.base import page_before
from app.models.workspaces import Workspace
from app.web import filters, lists, periods
from app.web.access import staff
from app.web.filters import Filter

blueprint = Blueprint("staff_log", __name__)

BY = {"support": "Support staff"}
_FILTERS = {
    "person": Filter("Person"),
    "by": Filter("By", filters.one_of(BY), [("", "Everybody"), *BY.items()]),
    "workspace": Filter("Workspace", filters.identifier("ws")),
    **periods.FILTERS,
}


@blueprint.get("/dashboard/audit")
@staff
def index() -> str | Response:
    """Lists the entries that match the filters, newest first, as a page or as a file."""
    chosen = filters.read(_FILTERS)
    fetch = periods.ranged(partial(_fetch, chosen.values), chosen.values, partial(ids.bound, "aud"))
    if lists.wanted_format():
        return lists.file_of(lambda: _rows(fetch(None, lists.MOST_EXPORTED)), "audit-log")
    shown = lists.sliced(fetch)
    return render_template(
        "audit/everywhere.html",
        page=shown,
        **chosen.shown(),
        presets=periods.presets(),
        names=audit.names_everywhere(shown.rows),
        workspaces=_workspaces(shown.rows),
        did=audit_sentences.did,
        address=lists.address,
    )


def _fetch(values: Mapping[str, Any], after: str | None, limit: int) -> list[AuditEntry]:
    asked = {name: values[name] for name in ("person", "workspace") if name in values}
    if "by" in values:
        asked["actor_type"] = values["by"]
    return list(page_before(audit.everywhere(asked), AuditEntry, [after], limit))


def _workspaces(entries: Sequence[AuditEntry]) -> dict[str, str]:
    """Returns the names of the entries' workspaces, by identifier."""
    wanted = {entry.workspace_id for entry in entries if entry.workspace_id}
    return {each.id: each.name for each in Workspace.select().where(Workspace.id.in_(wanted))} if wanted else {}


def _rows(entries: Sequence[AuditEntry]) -> list[dict[str, Any]]:
    names, workspaces = audit.names_everywhere(entries), _workspaces(entries)
    return [
        {
            **lists.columns(entry, "id", "created_at", "workspace_id"),
            "workspace": workspaces.get(entry.workspace_id or ""),
            **lists.columns(entry, "actor_type", "actor_id"),
            "person": names.get(entry.actor_id or ""),
            **lists.columns(entry, "action", "target_type", "target_id", "reason", "ticket", "detail"),
        }
        for entry in entries
    ]

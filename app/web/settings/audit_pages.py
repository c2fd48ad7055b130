"""The audit logs of a workspace and of all: who did what, and why support staff did it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from flask import Blueprint, Response, render_template

from app.domain.work import audit, audit_sentences
from app.lib import ids
from app.models.audit_entries import AuditEntry
from app.models.base import page_before
from app.models.workspaces import Workspace
from app.web import filters, lists, periods
from app.web.access import page, staff, viewer, workspace_id
from app.web.filters import Filter

blueprint = Blueprint("audit_pages", __name__)

RowsOf = Callable[[Sequence[AuditEntry]], list[dict[str, Any]]]

_FILTERS = {"action": Filter("Action"), "target": Filter("Target"), **periods.FILTERS}
_FILTERS_OF_ALL = {
    "person": Filter("Person"),
    "by": Filter("By", filters.one_of(("support",)), [("", "Everybody"), ("support", "Support staff")]),
    "workspace": Filter("Workspace", filters.identifier("ws")),
    **periods.FILTERS,
}


@blueprint.get("/workspaces/<workspace>/settings/audit")
@page("audit.see")
def index() -> str | Response:
    """Lists the workspace's entries that match the filters, newest first, as a page or as a file."""
    chosen = filters.read(_FILTERS)
    columns = {"action": AuditEntry.action, "target": AuditEntry.target_id}
    found = AuditEntry.in_workspace(workspace_id())
    for name, column in columns.items():
        if name in chosen.values:
            found = found.where(column == chosen.values[name])
    return _list(chosen, found, _rows)


@blueprint.get("/dashboard/audit")
@staff
def index_all() -> str | Response:
    """Lists all workspaces' entries that match the filters, newest first, as a page or as a file."""
    chosen = filters.read(_FILTERS_OF_ALL)
    asked = {"actor_type" if name == "by" else name: value for name, value in chosen.values.items()}
    return _list(chosen, audit.everywhere(asked), _rows_of_all, is_all=True)


def _list(chosen: filters.Filters, found: Any, rows_of: RowsOf, *, is_all: bool = False) -> str | Response:
    def newest(after: str | None, limit: int) -> list[AuditEntry]:
        return list(page_before(found, AuditEntry, [after], limit))

    fetch = periods.ranged(newest, chosen.values, partial(ids.bound, "aud"))
    if lists.wanted_format():
        return lists.file_of(lambda: rows_of(fetch(None, lists.MOST_EXPORTED)), "audit-log")
    shown = lists.sliced(fetch)
    return render_template(
        "audit/index.html",
        page=shown,
        **chosen.shown(),
        presets=periods.presets(),
        names=_names(shown.rows),
        workspaces=_workspaces(shown.rows) if is_all else {},
        did=audit_sentences.did,
        is_all=is_all,
    )


def _names(entries: Sequence[AuditEntry]) -> dict[str, str]:
    """Returns the names of actors by identifier. Only staff get the names of support staff."""
    if viewer().signed.is_support:
        return audit.names_everywhere(entries)
    return audit.names_of(workspace_id(), [each.actor_id for each in entries if each.actor_id])


def _workspaces(entries: Sequence[AuditEntry]) -> dict[str, str]:
    wanted = {entry.workspace_id for entry in entries if entry.workspace_id}
    return {each.id: each.name for each in Workspace.select().where(Workspace.id.in_(wanted))} if wanted else {}


def _rows(entries: Sequence[AuditEntry]) -> list[dict[str, Any]]:
    names = _names(entries)
    return [_row(each) | {"actor_name": names.get(each.actor_id or "")} for each in entries]


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


def _rows_of_all(entries: Sequence[AuditEntry]) -> list[dict[str, Any]]:
    names, workspaces = _names(entries), _workspaces(entries)
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

"""The audit log of a workspace: who did what, and why support staff did it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from flask import Blueprint, Response, render_template

from app.domain.work import audit, audit_sentences
from app.lib import ids
from app.models.audit_entries import AuditEntry
from app.models.base import page_before
from app.web import filters, lists, periods
from app.web.access import page, viewer, workspace_id
from app.web.filters import Filter

blueprint = Blueprint("audit_pages", __name__, url_prefix="/workspaces/<workspace>/settings/audit")

_FILTERS = {"action": Filter("Action"), "target": Filter("Target"), **periods.FILTERS}


@blueprint.get("")
@page("audit.see")
def index() -> str | Response:
    """Lists the entries that match the filters, newest first, as a page or as a file."""
    chosen = filters.read(_FILTERS)
    fetch = periods.ranged(partial(_fetch, chosen.values), chosen.values, partial(ids.bound, "aud"))
    if lists.wanted_format():
        return lists.file_of(lambda: _rows(fetch(None, lists.MOST_EXPORTED)), "audit-log")
    shown = lists.sliced(fetch)
    return render_template(
        "audit/index.html",
        page=shown,
        **chosen.shown(),
        presets=periods.presets(),
        names=_names(shown.rows),
        did=audit_sentences.did,
        address=lists.address,
    )


def _fetch(values: Mapping[str, Any], after: str | None, limit: int) -> list[AuditEntry]:
    found = AuditEntry.in_workspace(workspace_id())
    if "action" in values:
        found = found.where(AuditEntry.action == values["action"])
    if "target" in values:
        found = found.where(AuditEntry.target_id == values["target"])
    return list(page_before(found, AuditEntry, [after], limit))


def _names(entries: Sequence[AuditEntry]) -> dict[str, str]:
    """Returns the names of actors. Customers see the ticket, not which member of staff acted."""
    if viewer().signed.is_support:
        return audit.names_everywhere(entries)
    return audit.names_of(workspace_id(), [each.actor_id for each in entries if each.actor_id])


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

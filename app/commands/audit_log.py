"""The command `python -m app audit list`: one audit log of all workspaces."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Any

import click

from app.commands.command_lines import Commands, Time, as_json, print_list
from app.domain.work import audit, audit_sentences
from app.lib import ids
from app.models.audit_entries import AuditEntry
from app.models.base import page_before


@click.group("audit", cls=Commands)
def audit_group() -> None:
    """The audit log of all workspaces."""


@audit_group.command("list")
@click.option("--person", metavar="EMAIL", help="Only what this member, or member of support staff, did.")
@click.option("--support", "is_support", is_flag=True, help="Only what support staff did.")
@click.option("--workspace", metavar="WORKSPACE", help="Only what was done in this workspace.")
@click.option("--since", type=Time(), help="Done at this time or later.")
@click.option("--until", type=Time(), help="Done before this time.")
@click.option("--after", metavar="AUDIT_ID", help="Only those before this one in time: the last of the page before.")
@click.option("--limit", type=click.IntRange(1, 1000), default=100, show_default=True, metavar="NUMBER")
@as_json
def list_entries(
    since: datetime | None,
    until: datetime | None,
    after: str | None,
    limit: int,
    *,
    is_support: bool,
    as_json: bool,
    **given: str | None,
) -> None:
    """List who did what and, for support staff, why; newest first."""
    chosen = {name: value for name, value in given.items() if value is not None}
    if is_support:
        chosen["actor_type"] = "support"
    found = audit.everywhere(chosen)
    if since is not None:
        found = found.where(AuditEntry.id >= ids.bound("aud", since))
    if until is not None:
        found = found.where(AuditEntry.id < ids.bound("aud", until))
    entries = list(page_before(found, AuditEntry, [after], limit))
    print_list("entries", map(partial(_row, audit.names_everywhere(entries)), entries), as_json=as_json)


def _row(names: dict[str, str], entry: AuditEntry) -> dict[str, Any]:
    return {
        "id": entry.id,
        "created_at": entry.created_at,
        "workspace": entry.workspace_id,
        "actor_type": entry.actor_type,
        "actor": names.get(entry.actor_id or "") or entry.actor_id,
        "did": f"{audit_sentences.did(entry.action, entry.target_type)} {entry.target_id}",
        "action": entry.action,
        "ticket": entry.ticket,
        "reason": entry.reason,
        "detail": entry.detail,
    }

"""The audit log: who did what to endpoints, their secrets and their deliveries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from app.database import batches
from app.domain.changes import Change
from app.lib import ids
from app.models.audit_entries import AuditEntry


def record(
    change: Change, target_type: str, target_id: str, detail: Mapping[str, Any], endpoint_id: str | None = None
) -> None:
    """Records a change, in its transaction. `detail` must not contain secrets.

    `endpoint_id`: the endpoint that the target belongs to, if the target is not an endpoint itself.
    """
    AuditEntry.insert(
        id=ids.new("aud"),
        workspace_id=change.workspace_id,
        action=change.kind,
        actor_type="token" if change.token_id else "command",
        actor_id=change.token_id,
        target_type=target_type,
        target_id=target_id,
        endpoint_id=target_id if target_type == "endpoint" else endpoint_id,
        detail=detail,
        job_id=change.events.cause.job_id,
        trace_id=change.events.cause.trace_id,
    ).execute()


def of_contact(contact_id: str) -> Iterator[dict[str, Any]]:
    """The entries about a contact and about the deliveries of its events."""
    targets = "SELECT %s UNION ALL SELECT id FROM deliveries WHERE contact_id = %s"
    for batch in batches(targets, (contact_id, contact_id)):
        yield from map(represent, AuditEntry.select().where(AuditEntry.target_id.in_(batch)).order_by(AuditEntry.id))


def represent(entry: AuditEntry) -> dict[str, Any]:
    """The entry as the API shows it."""
    return {
        "id": entry.id,
        "action": entry.action,
        "actor": {"type": entry.actor_type, "id": entry.actor_id},
        "target": {"type": entry.target_type, "id": entry.target_id},
        "detail": entry.detail,
        "created_at": entry.created_at,
    }

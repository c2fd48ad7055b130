"""Audit entries: who did what, kept after the job that did it is deleted."""

from __future__ import annotations

from peewee import TextField

from app.models.base import OwnedModel, TimeField, json_field


class AuditEntry(OwnedModel):
    FILTERS = ("endpoint_id", "action")

    # Null in entries about support accounts, which operators manage.
    workspace_id = TextField(null=True)  # type: ignore[assignment]
    action = TextField()
    actor_type = TextField()
    actor_id = TextField(null=True)
    account_id = TextField(null=True)
    target_type = TextField()
    target_id = TextField()
    endpoint_id = TextField(null=True)
    detail = json_field()
    job_id = TextField(null=True)
    trace_id = TextField()
    reason = TextField(null=True)
    ticket = TextField(null=True)
    created_at = TimeField()

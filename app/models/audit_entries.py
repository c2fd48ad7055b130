"""Audit entries: who asked for what, kept when the job that did it is long gone."""

from __future__ import annotations

from typing import Any

from peewee import TextField

from app.models.base import OwnedModel, TimeField, json_field


class AuditEntry(OwnedModel):
    id = TextField(primary_key=True)
    action = TextField()
    actor_type = TextField()
    actor_id = TextField(null=True)
    target_type = TextField()
    target_id = TextField()
    endpoint_id = TextField(null=True)
    detail = json_field()
    job_id = TextField(null=True)
    trace_id = TextField()
    created_at = TimeField()

    class Meta:
        table_name = "audit_entries"

    @classmethod
    def matching(cls, workspace_id: str, filters: dict[str, Any]) -> Any:
        """The query behind the list: `endpoint_id`, `action`, all that are given."""
        query = cls.in_workspace(workspace_id)
        for name in ("endpoint_id", "action"):
            if name in filters:
                query = query.where(getattr(cls, name) == filters[name])
        return query

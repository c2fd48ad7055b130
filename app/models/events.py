"""Events: what happened in a workspace, with the bytes that every delivery sends."""

from __future__ import annotations

from peewee import BlobField, TextField

from app.models.base import BaseModel, TimeField


class Event(BaseModel):
    id = TextField(primary_key=True)
    workspace_id = TextField()
    kind = TextField()
    contact_id = TextField(null=True)
    job_id = TextField(null=True)
    trace_id = TextField()
    body = BlobField()
    created_at = TimeField()

    class Meta:
        table_name = "events"

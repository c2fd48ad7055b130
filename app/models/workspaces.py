"""Workspaces, which own all other rows."""

from __future__ import annotations

from peewee import TextField

from app.models.base import BaseModel, TimeField, json_field


class Workspace(BaseModel):
    id = TextField(primary_key=True)
    name = TextField()
    timezone = TextField(default="UTC")
    quiet_hours = json_field(null=True)
    created_at = TimeField()

    class Meta:
        table_name = "workspaces"

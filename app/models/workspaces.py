"""Workspaces: what every other row belongs to."""

from __future__ import annotations

from peewee import TextField

from app.models.base import BaseModel, TimeField


class Workspace(BaseModel):
    id = TextField(primary_key=True)
    name = TextField()
    created_at = TimeField()

    class Meta:
        table_name = "workspaces"

"""Members: the people who sign in to a workspace."""

from __future__ import annotations

from peewee import BooleanField, TextField

from app.models.base import BaseModel, TimeField


class Member(BaseModel):
    id = TextField(primary_key=True)
    workspace_id = TextField()
    email = TextField()
    password_hash = TextField()
    role = TextField()
    is_support = BooleanField(default=False)
    created_at = TimeField()

    class Meta:
        table_name = "members"

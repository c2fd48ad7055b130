"""Members: the accounts that belong to a workspace, each with its role."""

from __future__ import annotations

from peewee import TextField

from app.models.base import OwnedModel, TimeField


class Member(OwnedModel):
    account_id = TextField()
    role = TextField()
    read_until = TextField(default="")
    mailed_until = TextField(default="")
    created_at = TimeField()

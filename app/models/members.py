"""Members: the accounts that belong to a workspace, each with its role."""

from __future__ import annotations

from typing import ClassVar

from peewee import BooleanField, IntegerField, TextField

from app.models.base import OwnedModel, TimeField, text_array


class Member(OwnedModel):
    FIXED: ClassVar[frozenset[str]] = frozenset({"account_id", "notices", "shows_texts", "created_at"})

    account_id = TextField()
    role = TextField()
    availability = TextField(default="available")
    capacity = IntegerField(null=True)
    assigned_at = TimeField(null=True)
    read_until = TextField(default="")
    mailed_until = TextField(default="")
    notices = text_array(null=True)
    shows_texts = BooleanField(default=True)
    created_at = TimeField()

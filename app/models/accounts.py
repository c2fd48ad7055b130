"""Accounts of people, one per e-mail address, and the links that set their passwords."""

from __future__ import annotations

from peewee import BlobField, BooleanField, TextField

from app.models.base import BaseModel, TimeField


class Account(BaseModel):
    email = TextField()
    password_hash = TextField(null=True)
    is_support = BooleanField(default=False)
    disabled_at = TimeField(null=True)
    wants_email = BooleanField(default=True)
    mailed_at = TimeField(null=True)
    created_at = TimeField()


class PasswordLink(BaseModel):
    token_hash = BlobField()
    account_id = TextField()
    purpose = TextField()
    workspace_id = TextField(null=True)
    role = TextField(null=True)
    created_at = TimeField()
    expires_at = TimeField()
    used_at = TimeField(null=True)

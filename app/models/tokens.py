"""API tokens, of which only the digest is stored."""

from __future__ import annotations

from peewee import BlobField, TextField

from app.models.base import BaseModel, TimeField, text_array


class Token(BaseModel):
    workspace_id = TextField()
    name = TextField()
    digest = BlobField()
    restrictions = text_array(null=True)
    expires_at = TimeField(null=True)
    revoked_at = TimeField(null=True)
    last_used_at = TimeField(null=True)
    created_at = TimeField()

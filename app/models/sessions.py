"""Sessions of signed-in people, by the digest of the token in their browser's cookie."""

from __future__ import annotations

from peewee import BlobField, TextField

from app.models.base import BaseModel, TimeField


class Session(BaseModel):
    token_hash = BlobField()
    account_id = TextField()
    address = TextField()
    user_agent = TextField()
    created_at = TimeField()
    seen_at = TimeField()
    expires_at = TimeField()
    ended_at = TimeField(null=True)

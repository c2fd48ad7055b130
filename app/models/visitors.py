"""Visitors: the browsers from which messages were written in a web chat."""

from __future__ import annotations

from peewee import BlobField, TextField

from app.models.base import OwnedModel, TimeField


class ChatVisitor(OwnedModel):
    id = TextField(primary_key=True)
    channel_id = TextField()
    key_hash = BlobField()
    token_hash = BlobField()
    user_id = TextField(null=True)
    peer = TextField()
    created_at = TimeField()
    expires_at = TimeField(null=True)

    class Meta:
        table_name = "visitors"

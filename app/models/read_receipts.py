"""Read receipts: what providers are still to be told was read."""

from __future__ import annotations

from peewee import IntegerField, TextField

from app.models.base import OwnedModel, TimeField


class ReadReceipt(OwnedModel):
    id = TextField(primary_key=True)
    channel_id = TextField()
    conversation_id = TextField()
    provider_id = TextField()
    tries = IntegerField(default=0)
    next_attempt_at = TimeField(null=True)
    due_at = TimeField(null=True)
    leased_until = TimeField(null=True)
    claim = IntegerField(default=0)
    created_at = TimeField()

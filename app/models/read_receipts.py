"""Read receipts that are still to be sent to providers."""

from __future__ import annotations

from peewee import IntegerField, TextField

from app.models.base import MailModel, TimeField


class ReadReceipt(MailModel):
    channel_id = TextField()
    conversation_id = TextField()
    provider_id = TextField()
    tries = IntegerField(default=0)
    next_attempt_at = TimeField(null=True)
    created_at = TimeField()

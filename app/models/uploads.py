"""Uploads: files that are, or will be, attached to messages or saved replies."""

from __future__ import annotations

from peewee import BigIntegerField, BooleanField, IntegerField, TextField

from app.models.base import MailModel, TimeField, json_field


class Upload(MailModel):
    """A file of one message or saved reply. `was_sent`: a message has used the file of a saved reply."""

    channel_id = TextField(null=True)
    message_id = TextField(null=True)
    visitor_id = TextField(null=True)
    run_id = TextField(null=True)
    saved_reply_id = TextField(null=True)
    was_sent = BooleanField(default=False)
    name = TextField(null=True)
    content_type = TextField(null=True)
    bytes = BigIntegerField(null=True)
    file = TextField(null=True)
    source = json_field(null=True)
    problem = TextField(null=True)
    tries = IntegerField(default=0)
    next_attempt_at = TimeField(null=True)
    expires_at = TimeField(null=True)
    created_at = TimeField()

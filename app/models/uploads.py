"""Uploads: files that are, or may be, attached to messages, saved replies or broadcasts."""

from __future__ import annotations

from peewee import BigIntegerField, BooleanField, IntegerField, TextField

from app.models.base import MailModel, TimeField, json_field


class Upload(MailModel):
    """A file that was uploaded, or is fetched for a message or a run. At most one message owns it.

    `saved_reply_id`: the saved reply or broadcast that keeps the file. `was_sent`: messages have used the kept file, so
    it does not expire when its keeper detaches it.
    """

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

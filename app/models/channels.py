"""Channels: the connections to providers over which a workspace talks to its contacts."""

from __future__ import annotations

from peewee import BlobField, TextField

from app.models.base import OwnedModel, TimeField, json_field


class Channel(OwnedModel):
    id = TextField(primary_key=True)
    kind = TextField()
    name = TextField()
    state = TextField(default="connected")
    settings = json_field(default=dict)
    problem = json_field(null=True)
    credentials = BlobField(null=True)
    account = TextField(null=True)
    paced_until = TimeField(null=True)
    paused_until = TimeField(null=True)
    deleted_at = TimeField(null=True)
    created_at = TimeField()

    class Meta:
        table_name = "channels"

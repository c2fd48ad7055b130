"""Channels: the connections to providers through which a workspace talks to its contacts."""

from __future__ import annotations

from typing import Any

from peewee import BlobField, TextField

from app.models.base import OwnedModel, TimeField, json_field


class Channel(OwnedModel):
    """A channel. The row of a deleted channel stays, because conversations refer to it.

    Only SQL reads `paced_until` and `paused_until`: PostgreSQL may hold times there that Python cannot represent.
    """

    PREFIX = "chn"

    kind = TextField()
    name = TextField()
    state = TextField(default="connected")
    settings = json_field(default=dict)
    problem = json_field(null=True)
    credentials = BlobField(null=True)
    account = TextField(null=True)
    stopped_at = TimeField(null=True)
    deleted_at = TimeField(null=True)
    created_at = TimeField()

    @classmethod
    def in_workspace(cls, workspace_id: str) -> Any:
        """Returns a query for the workspace's channels, without deleted ones."""
        return super().in_workspace(workspace_id).where(cls.deleted_at.is_null())

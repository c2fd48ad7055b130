"""Webhook endpoints: the addresses that a workspace's events go to."""

from __future__ import annotations

from typing import Any

from peewee import BlobField, BooleanField, IntegerField, TextField

from app.models.base import OwnedModel, TimeField, text_array


class Endpoint(OwnedModel):
    id = TextField(primary_key=True)
    address = TextField()
    events = text_array()
    description = TextField(null=True)
    state = TextField(default="active")
    stop_reason = TextField(null=True)
    stopped_at = TimeField(null=True)
    consecutive_failures = IntegerField(default=0)
    answered = BooleanField(default=False)
    slow_until = TimeField(null=True)
    secret = BlobField()
    previous_secret = BlobField(null=True)
    previous_secret_until = TimeField(null=True)
    created_at = TimeField()
    updated_at = TimeField()

    class Meta:
        table_name = "endpoints"

    @classmethod
    def in_workspace(cls, workspace_id: str) -> Any:
        return super().in_workspace(workspace_id).where(cls.state != "deleted")

    @classmethod
    def locked(cls, ids: list[str]) -> list[Endpoint]:
        """The endpoints, locked for this transaction, always in the same order so that two workers never deadlock."""
        found = cls.select().where(cls.id.in_(ids)).order_by(cls.id)
        return list(found.for_update("FOR NO KEY UPDATE"))  # type: ignore[arg-type]

    def wants(self, kind: str) -> bool:
        return "*" in self.events or kind in self.events

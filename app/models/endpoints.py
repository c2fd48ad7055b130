"""Webhook endpoints: the addresses that a workspace's events go to."""

from __future__ import annotations

from collections.abc import Collection
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
    def locked(cls, failing: Collection[str], others: Collection[str]) -> list[Endpoint]:
        """The failing endpoints, and of the others those whose row will change, locked for this transaction.

        Always in the same order, so that two workers never deadlock.
        """
        wanted = cls.id.in_(list(failing)) | (cls.id.in_(list(others)) & ~cls.answered)
        found = cls.select().where(wanted).order_by(cls.id)
        return list(found.for_update("FOR NO KEY UPDATE"))  # type: ignore[arg-type]

    def wants(self, kind: str) -> bool:
        return "*" in self.events or kind in self.events

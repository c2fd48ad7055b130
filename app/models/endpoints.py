"""Webhook endpoints: the addresses that a workspace's events are sent to."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from peewee import BlobField, BooleanField, IntegerField, TextField

from app.models.base import OwnedModel, TimeField, text_array


class Endpoint(OwnedModel):
    PREFIX = "whe"

    address = TextField()
    events = text_array()
    description = TextField(null=True)
    state = TextField(default="active")
    stop_reason = TextField(null=True)
    stopped_at = TimeField(null=True)
    consecutive_failures = IntegerField(default=0)
    failing_since = TimeField(null=True)  # the time of the first consecutive failure; meaningless without failures
    probe_at = TimeField(null=True)
    slow_until = TimeField(null=True)
    max_per_second = IntegerField(null=True)
    paced_until = TimeField(null=True)
    ordered = BooleanField(default=False)
    head_id = TextField(null=True)
    secret = BlobField()
    previous_secret = BlobField(null=True)
    previous_secret_until = TimeField(null=True)
    created_at = TimeField()
    updated_at = TimeField()

    @classmethod
    def in_workspace(cls, workspace_id: str) -> Any:
        """Returns a query for the workspace's endpoints, without deleted ones."""
        return super().in_workspace(workspace_id).where(cls.state != "deleted")

    @classmethod
    def addresses(cls, workspace_id: str, endpoint_ids: Collection[str]) -> dict[str, str]:
        """Returns the endpoints' addresses by identifier, of deleted ones too while they have a row."""
        if not endpoint_ids:
            return {}
        found = cls.select(cls.id, cls.address).where(cls.id.in_(list(endpoint_ids)), cls.workspace_id == workspace_id)
        return {endpoint.id: endpoint.address for endpoint in found}

    @classmethod
    def stopped(cls, workspace_id: str, endpoint_ids: Collection[str]) -> list[str]:
        """Returns the identifiers of the given endpoints that are stopped."""
        if not endpoint_ids:
            return []
        of_these = cls.select(cls.id).where(cls.id.in_(list(endpoint_ids)), cls.workspace_id == workspace_id)
        return [endpoint.id for endpoint in of_these.where(cls.state == "stopped").order_by(cls.id)]

    @classmethod
    def with_address(cls, workspace_id: str, part: str | None, state: str | None) -> Any:
        """Returns a query for endpoints in `state` with `part` in their address, in any case; None: any."""
        query = cls.in_workspace(workspace_id)
        if part is not None:
            query = query.where(cls.address.contains(part))
        return query if state is None else query.where(cls.state == state)

    @classmethod
    def lock_free(cls, endpoint_ids: Collection[str]) -> list[Endpoint]:
        """Locks and returns the endpoints that no other transaction has locked. Never waits."""
        free = cls.select().where(cls.id.in_(list(endpoint_ids))).order_by(cls.id)
        return list(free.for_update("FOR NO KEY UPDATE SKIP LOCKED"))  # type: ignore[arg-type]

    def wants(self, kind: str) -> bool:
        """Whether events of this kind are sent to the endpoint."""
        return "*" in self.events or kind in self.events

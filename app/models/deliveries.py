"""Deliveries of events to endpoints, in a mailbox for each endpoint, and their attempts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from peewee import IntegerField, TextField

from app.lib import ids
from app.models.base import BaseModel, Count, MailModel, TimeField, count_newest

STATUSES = ("pending", "delivered", "failed", "held", "cancelled")
# The columns of the filters, the most selective first.
_COLUMNS = {
    "error_code": "last_error_code",
    "status_code": "last_status",
    "status": "status",
    "endpoint_id": "endpoint_id",
    "kind": "kind",
}


class Delivery(MailModel):
    PREFIX = "dlv"
    FILTERS = ("endpoint_id", "status", "kind")

    event_id = TextField()
    endpoint_id = TextField()
    kind = TextField()
    contact_id = TextField(null=True)
    status = TextField(default="pending")
    attempts = IntegerField(default=0)
    tries = IntegerField(default=0)
    trigger = TextField(default="automatic")
    last_error = TextField(null=True)
    last_error_code = TextField(null=True)
    last_status = IntegerField(null=True)
    resent_from = TextField(null=True)
    next_attempt_at = TimeField(null=True)
    created_at = TimeField()
    delivered_at = TimeField(null=True)

    @classmethod
    def matching(cls, workspace_id: str, filters: Mapping[str, Any]) -> Any:
        """Returns a query for the matching rows. `error_code` and `status_code`: of the last attempt."""
        query = super().matching(workspace_id, filters)
        # Compares identifiers, which is approximate, to use the index, and then times, which is exact.
        if "since" in filters:
            query = query.where(cls.created_at >= filters["since"], cls.id >= ids.around("dlv", filters["since"], -1))
        if "until" in filters:
            query = query.where(cls.created_at < filters["until"], cls.id < ids.around("dlv", filters["until"], 1))
        if "error_code" in filters:
            query = query.where(cls.last_error_code == filters["error_code"])
        if "status_code" in filters:
            query = query.where(cls.last_status == filters["status_code"])
            if not 200 <= filters["status_code"] < 300:
                query = query.where(cls.last_error_code.is_null(False))  # redundant; lets the planner use the index
        return query

    @classmethod
    def counted(cls, workspace_id: str, filters: Mapping[str, Any], most: int) -> Count:
        """Returns how many rows match, among the newest `most` that match the most selective filter."""
        # No index separates delivered deliveries from the others.
        indexed = [name for name in _COLUMNS if name in filters and filters[name] != "delivered"]
        first = {name: filters[name] for name in ("since", "until", *indexed[:1]) if name in filters}
        others = filters.keys() & _COLUMNS.keys() - first.keys()
        conditions = [getattr(cls, _COLUMNS[name]) == filters[name] for name in sorted(others)]
        return count_newest(cls.matching(workspace_id, first), cls, conditions, most)

    @classmethod
    def of_event(cls, workspace_id: str, event_id: str, limit: int = 1_000) -> list[Delivery]:
        """Returns up to `limit` deliveries of the event, newest first."""
        found = cls.in_workspace(workspace_id).where(cls.event_id == event_id)
        return list(found.order_by(cls.id.desc()).limit(limit))


class Attempt(BaseModel):
    delivery_id = TextField()
    number = IntegerField()
    at = TimeField()
    duration_ms = IntegerField()
    status = IntegerField(null=True)
    error = TextField(null=True)
    error_code = TextField(null=True)
    response_body = TextField(null=True)
    trigger = TextField(default="automatic")
    recorded_at = TimeField(null=True)

    class Meta:
        primary_key = False

    @classmethod
    def of(cls, *delivery_ids: str) -> list[Attempt]:
        """Returns the attempts of the deliveries, oldest first within each delivery."""
        return list(cls.select().where(cls.delivery_id.in_(delivery_ids)).order_by(cls.delivery_id, cls.number))

    @classmethod
    def latest(cls, delivery_id: str, limit: int) -> list[Attempt]:
        """Returns the last `limit` attempts of the delivery, newest first."""
        return list(cls.select().where(cls.delivery_id == delivery_id).order_by(cls.number.desc()).limit(limit))

"""Bookings: the times that contacts have booked."""

from __future__ import annotations

from typing import Any

from peewee import TextField

from app.models.base import OwnedModel, TimeField


class Booking(OwnedModel):
    id = TextField(primary_key=True)
    contact_id = TextField()
    title = TextField()
    starts_at = TimeField()
    ends_at = TimeField()
    status = TextField(default="booked")
    created_at = TimeField()

    class Meta:
        table_name = "bookings"

    @classmethod
    def matching(cls, workspace_id: str, filters: dict[str, Any]) -> Any:
        """The query behind the list: `contact_id`, `status`, `starts_since`, `starts_until`, all that are given."""
        query = cls.in_workspace(workspace_id)
        for name in ("contact_id", "status"):
            if name in filters:
                query = query.where(getattr(cls, name) == filters[name])
        if "starts_since" in filters:
            query = query.where(cls.starts_at >= filters["starts_since"])
        if "starts_until" in filters:
            query = query.where(cls.starts_at < filters["starts_until"])
        return query

"""Workspaces, which own all other rows."""

from __future__ import annotations

from peewee import TextField

from app.models.base import BaseModel, TimeField, json_field, page_before

# The most workspaces that a search by name reads, because no index finds a part of a name.
MOST_SEARCHED = 20_000


class Workspace(BaseModel):
    name = TextField()
    timezone = TextField(default="UTC")
    quiet_hours = json_field(null=True)
    opt_out_words = json_field(null=True)
    created_at = TimeField()

    @classmethod
    def newest(cls, part: str | None, last_id: str | None, limit: int) -> list[Workspace]:
        """Returns the newest `limit` workspaces after `last_id` whose name contains `part`; None: any."""
        if part is None:
            return list(page_before(cls.select(), cls, [last_id], limit))
        looked_at = page_before(cls.select(cls.id), cls, [last_id], MOST_SEARCHED)
        found = cls.select().where(cls.id.in_(looked_at), cls.name.contains(part))
        return list(found.order_by(cls.id.desc()).limit(limit))

"""Macros: several actions that are taken in a conversation at once."""

from __future__ import annotations

from peewee import TextField, fn

from app.models.base import OwnedModel, TimeField, json_field, page_before


class Macro(OwnedModel):
    PREFIX = "mac"

    name = TextField()
    actions = json_field()
    created_at = TimeField()
    updated_at = TimeField()

    @classmethod
    def newest(cls, workspace_id: str, q: str | None, last_id: str | None, limit: int) -> list[Macro]:
        """Returns the newest `limit` macros after `last_id` whose name has `q` in any case; None: any."""
        query = cls.in_workspace(workspace_id)
        if q is not None:
            query = query.where(fn.STRPOS(fn.LOWER(cls.name), fn.LOWER(q)) > 0)
        return list(page_before(query, cls, [last_id], limit))

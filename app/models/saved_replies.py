"""Saved replies: texts that members insert by shortcut."""

from __future__ import annotations

from peewee import TextField, fn

from app.models.base import OwnedModel, TimeField, json_field, page_before


class SavedReply(OwnedModel):
    """A saved reply. `folded`: the casefolded shortcut, unique in the workspace."""

    PREFIX = "srp"

    shortcut = TextField()
    folded = TextField()
    text = TextField()
    attachments = json_field(default=list)
    created_at = TimeField()
    updated_at = TimeField()

    @classmethod
    def newest(cls, workspace_id: str, q: str | None, last_id: str | None, limit: int) -> list[SavedReply]:
        """Returns the newest `limit` replies after `last_id` that `q` (None: any) finds, ignoring case."""
        query = cls.in_workspace(workspace_id)
        if q is not None:
            begins = fn.STARTS_WITH(cls.folded, q.casefold())
            query = query.where(begins | (fn.STRPOS(fn.LOWER(cls.text), fn.LOWER(q)) > 0))
        return list(page_before(query, cls, [last_id], limit))

"""Saved views: named filters of an inbox list. A view belongs to a member or to the workspace."""

from __future__ import annotations

from peewee import TextField

from app.models.base import OwnedModel, TimeField, json_field


class SavedView(OwnedModel):
    """A saved view. `member_id` is null for a view of the workspace."""

    PREFIX = "svw"

    member_id = TextField(null=True)
    name = TextField()
    filters = json_field()
    created_at = TimeField()

    @classmethod
    def owned_by(cls, workspace_id: str, member_id: str | None) -> list[SavedView]:
        """Returns the saved views of the member, or (None) of the workspace, the oldest first."""
        whose = cls.member_id.is_null() if member_id is None else cls.member_id == member_id
        return list(cls.in_workspace(workspace_id).where(whose).order_by(cls.id))

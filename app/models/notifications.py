"""Notifications of a workspace, and e-mail to be sent."""

from __future__ import annotations

from peewee import BooleanField, IntegerField, TextField

from app.models.base import BaseModel, OwnedModel, TimeField, json_field, page_before


class Notification(OwnedModel):
    """`member_id`: whom it is for; None: all members."""

    member_id = TextField(null=True)
    kind = TextField()
    once = TextField()
    detail = json_field()
    is_announced = BooleanField(default=False)
    created_at = TimeField()

    @classmethod
    def newest(cls, workspace_id: str, member_id: str | None, last_id: str | None, limit: int) -> list[Notification]:
        """The first `limit` notifications after `last_id` for all members, and for this one if given, newest first."""
        of_all = cls.in_workspace(workspace_id).where(cls.member_id.is_null())
        own = cls.in_workspace(workspace_id).where(cls.member_id == member_id)
        queries = [of_all] if member_id is None else [of_all, own]
        found = [row for query in queries for row in page_before(query, cls, [last_id], limit)]
        return sorted(found, key=lambda row: str(row.id), reverse=True)[:limit]


class Email(BaseModel):
    kind = TextField()
    subject_id = TextField(null=True)
    address = TextField(null=True)
    attempts = IntegerField(default=0)
    due_at = TimeField()
    created_at = TimeField()

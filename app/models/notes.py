"""Notes about conversations, which only members see."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from peewee import TextField

from app.models.base import OwnedModel, TimeField, json_field, page_before, text_array


class Note(OwnedModel):
    """A note. Only its `contact_id` ever changes: a merge of contacts replaces it."""

    PREFIX = "nte"
    FIXED: ClassVar[frozenset[str]] = frozenset({"conversation_id", "author", "text", "mentions", "created_at"})

    conversation_id = TextField()
    contact_id = TextField()
    author = json_field()
    text = TextField()
    mentions = text_array(default=list)
    created_at = TimeField()

    @classmethod
    def newest(cls, conversation_id: str, last_id: str | None, limit: int) -> list[Note]:
        """Returns the first `limit` notes of the conversation after `last_id`, newest first."""
        query = cls.select().where(cls.conversation_id == conversation_id)
        return list(page_before(query, cls, [last_id], limit))

    @classmethod
    def between(cls, conversation_id: str, since: datetime | None, until: datetime | None, limit: int) -> list[Note]:
        """Returns the newest `limit` notes written from `since` on and before `until`, oldest first."""
        query = cls.select().where(cls.conversation_id == conversation_id)
        if since is not None:
            query = query.where(cls.created_at >= since)
        if until is not None:
            query = query.where(cls.created_at < until)
        return list(query.order_by(cls.id.desc()).limit(limit))[::-1]

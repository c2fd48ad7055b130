"""Drafts: texts that members have begun in conversations."""

from __future__ import annotations

from collections.abc import Collection

from peewee import CompositeKey, TextField

from app.models.base import OwnedModel, TimeField, text_array


class Draft(OwnedModel):
    """A member's draft in a conversation. `text` is empty once the draft was sent."""

    conversation_id = TextField()
    member_id = TextField()
    kind = TextField()
    text = TextField()
    key = TextField()
    sent_keys = text_array(default=list)
    updated_at = TimeField()

    class Meta:
        primary_key = CompositeKey("member_id", "conversation_id")

    @classmethod
    def of(cls, member_id: str, conversation_id: str) -> Draft | None:
        """Returns the member's draft in the conversation; None if there is none."""
        theirs = (cls.member_id == member_id) & (cls.conversation_id == conversation_id)
        found: Draft | None = cls.select().where(theirs).first()
        return found

    @classmethod
    def begun_in(cls, member_id: str, conversation_ids: Collection[str]) -> set[str]:
        """Returns the identifiers of the given conversations in which the member has a draft."""
        if not conversation_ids:
            return set()
        theirs = (cls.member_id == member_id) & cls.conversation_id.in_(conversation_ids) & (cls.text != "")
        return {draft.conversation_id for draft in cls.select(cls.conversation_id).where(theirs)}

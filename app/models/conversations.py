"""Conversations with contacts, and their messages."""

from __future__ import annotations

from typing import ClassVar

from peewee import BooleanField, IntegerField, TextField, Tuple, fn

from app.models.base import MailModel, OwnedModel, TimeField, json_field


class Conversation(OwnedModel):
    """A conversation changes only in a transaction that has locked its contact.

    `waiting_run_id`: the run that began to wait for a reply in it last, and that may have ended its wait since. As
    there is only one, no two runs wait in one conversation.
    """

    PREFIX = "cnv"
    # The sender paces conversations without the contact's lock.
    FIXED: ClassVar[frozenset[str]] = frozenset({"channel_id", "created_at", "paced_until"})
    FILTERS: ClassVar[tuple[str, ...]] = ("status", "assignee_id", "contact_id")

    id = TextField(primary_key=True)
    contact_id = TextField()
    channel_id = TextField()
    peer = TextField(null=True)
    status = TextField(default="open")
    assignee_id = TextField(null=True)
    held_at = TimeField(null=True)
    waiting_run_id = TextField(null=True)
    unread = IntegerField(default=0)
    window_ends_at = TimeField(null=True)
    paced_until = TimeField(null=True)
    last_message_at = TimeField(null=True)
    created_at = TimeField()


class Message(MailModel):
    """`sent_at` is set by the database, when the message is first known to be sent."""

    PREFIX = "msg"
    FIXED: ClassVar[frozenset[str]] = frozenset(
        {"channel_id", "direction", "buttons", "button_id", "author", "sent_at", "expires_at", "created_at"}
    )

    id = TextField(primary_key=True)
    conversation_id = TextField()
    contact_id = TextField()
    channel_id = TextField(null=True)
    direction = TextField()
    text = TextField(null=True)
    template = json_field(null=True)
    attachments = json_field(default=list)
    buttons = json_field(null=True)
    button_id = TextField(null=True)
    status = TextField()
    failure = json_field(null=True)
    author = json_field()
    run_id = TextField(null=True)
    provider_id = TextField(null=True)
    provider_time = TimeField(null=True)
    edited_at = TimeField(null=True)
    sent_at = TimeField(null=True)
    is_automated = BooleanField(default=False)
    is_behind = BooleanField(default=False)
    put_off_at = TimeField(null=True)
    expires_at = TimeField(null=True)
    created_at = TimeField()

    @classmethod
    def latest(cls, conversation_id: str, last_at: str | None, last_id: str | None, limit: int) -> list[Message]:
        """The conversation's messages by `at`, the provider's time or else ours, newest first, after that position."""
        at = fn.COALESCE(cls.provider_time, cls.created_at)
        query = cls.select(cls, at.alias("at")).where(cls.conversation_id == conversation_id)
        if last_at is not None:
            query = query.where(Tuple(at, cls.id) < Tuple(last_at, last_id))
        return list(query.order_by(at.desc(), cls.id.desc()).limit(limit))

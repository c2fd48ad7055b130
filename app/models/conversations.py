"""Conversations with contacts, and their messages."""

from __future__ import annotations

from typing import ClassVar

from peewee import TextField

from app.models.base import OwnedModel, TimeField, json_field


class Channel(OwnedModel):
    id = TextField(primary_key=True)
    kind = TextField()
    name = TextField()
    state = TextField(default="connected")
    created_at = TimeField()

    class Meta:
        table_name = "channels"


class Conversation(OwnedModel):
    """A conversation changes only in a transaction that has locked its contact.

    `waiting_run_id`: the run that began to wait for a reply in it last, and that may have ended its wait since. As
    there is only one, no two runs wait in one conversation.
    """

    FIXED: ClassVar[frozenset[str]] = frozenset({"contact_id", "channel_id", "created_at"})

    id = TextField(primary_key=True)
    contact_id = TextField()
    channel_id = TextField()
    status = TextField(default="open")
    assignee_id = TextField(null=True)
    held_at = TimeField(null=True)
    waiting_run_id = TextField(null=True)
    last_message_at = TimeField(null=True)
    created_at = TimeField()

    class Meta:
        table_name = "conversations"


class Message(OwnedModel):
    FIXED: ClassVar[frozenset[str]] = frozenset({"conversation_id", "contact_id", "direction", "author", "created_at"})

    id = TextField(primary_key=True)
    conversation_id = TextField()
    contact_id = TextField()
    direction = TextField()
    text = TextField(null=True)
    template = json_field(null=True)
    status = TextField()
    failure = json_field(null=True)
    author = json_field()
    run_id = TextField(null=True)
    created_at = TimeField()

    class Meta:
        table_name = "messages"

"""Closings of channels: deletes a channel, closes its conversations and ends what waits for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from peewee import fn

from app.channels.kinds import KINDS
from app.database import count, rows, transaction
from app.domain import audit, channel_requests, channels, contacts, conversations, fan_out, messages
from app.domain.changes import Change, Effect
from app.domain.events import Recorder
from app.domain.units import Busy
from app.lib import json
from app.models import sets
from app.models.channels import Channel
from app.models.contacts import Contact
from app.models.conversations import Conversation, Message

# The most rows of a table that one transaction changes.
PART = 200
# For how long after its deletion something may still be added to a channel, or be in progress.
_WATCHED = "1 day"
DELETED = {"code": "channel_deleted", "detail": "The channel was deleted before this could be sent."}


def delete(change: Change) -> Effect | None:
    """Marks the channel deleted, then closes its conversations, in parts; `end_waiting` ends what waits.

    The provider is asked to end the connection. Raises NotFound, Busy.
    """
    if change.progress is None:
        _begin(change, channels.find(change.workspace_id, change.target))
        change.keep(after="")
        return None
    after = _close_some(change, change.progress["after"])
    if after is None:
        return Effect("deleted", "channel", change.target)
    change.keep(after=after)
    return None


def end_waiting(limit: int = PART) -> int:
    """Fails messages that wait for channels deleted lately, and gives up files to be fetched; returns how many.

    A message that a worker is sending is left to it while its lease lasts, and is `unknown` if the worker died.
    """
    deleted = f"SELECT id, workspace_id FROM channels WHERE deleted_at > now() - interval '{_WATCHED}'"
    ended = 0
    for channel_id, workspace_id in rows(deleted):
        ended += _fail_messages(workspace_id, channel_id, limit)
        ended += count(
            """
            UPDATE uploads SET problem = 'channel_deleted', due_at = NULL, next_attempt_at = NULL, claim = claim + 1
            WHERE id IN (
                SELECT id FROM uploads
                WHERE channel_id = %s AND due_at IS NOT NULL AND (leased_until > now()) IS NOT TRUE
                LIMIT %s FOR NO KEY UPDATE SKIP LOCKED)
            """,
            (channel_id, limit),
        )
    return ended


def _begin(change: Change, channel: Channel) -> None:
    Channel.update(deleted_at=fn.now(), state="disconnected", problem=None).where(Channel.id == channel.id).execute()
    kind = KINDS.get(channel.kind)
    if kind is None or kind.has_provider:
        channel_requests.ask(channel.workspace_id, channel.id, "disconnect")
    else:
        Channel.update(credentials=None).where(Channel.id == channel.id).execute()
    audit.record(change, "channel", channel.id, {"kind": channel.kind, "name": channel.name})


def _close_some(change: Change, after: str) -> str | None:
    """Closes the next open conversations after that one; returns the last one closed, None if there were no more."""
    unit = change.unit
    found = rows(
        """
        SELECT id, contact_id FROM conversations
        WHERE channel_id = %s AND id > %s AND status = 'open' ORDER BY id LIMIT %s
        """,
        (change.target, after, PART),
    )
    unit.read(sets.key(Contact, change.workspace_id, "id", contact_id) for _, contact_id in found)
    free = [row for row in found if unit.is_free(sets.key(Contact, change.workspace_id, "id", row[1]))]
    unit.read(sets.key(Conversation, change.workspace_id, "id", conversation_id) for conversation_id, _ in free)
    closed: str | None = None
    for conversation_id, contact_id in found:
        try:
            with unit.attempt():
                _close(change, conversation_id, contact_id)
        except Busy:
            if closed is None:
                raise
            return closed
        closed = conversation_id
    return closed


def _close(change: Change, conversation_id: str, contact_id: str) -> None:
    contact = change.unit.get(Contact, change.workspace_id, "id", contact_id)
    conversation = change.unit.get(Conversation, change.workspace_id, "id", conversation_id)
    if contact is not None and conversation is not None:
        conversations.close(change, contact, conversation)


def _fail_messages(workspace_id: str, channel_id: str, limit: int) -> int:
    """Those that wait behind others come first, so that none of them is left behind a message that is finished."""
    with transaction():
        # Whoever finishes a message makes the next one due under this lock.
        conversation_ids = [
            id
            for (id,) in rows(
                """
                SELECT id FROM conversations WHERE id IN (
                    SELECT conversation_id FROM messages
                    WHERE channel_id = %s AND due_at IS NOT NULL AND (leased_until > now()) IS NOT TRUE LIMIT %s)
                FOR NO KEY UPDATE SKIP LOCKED
                """,
                (channel_id, limit),
            )
        ]
        # The claim that a dead worker had is not valid any more.
        failed = rows(
            """
            UPDATE messages SET status = CASE status WHEN 'sending' THEN 'unknown' WHEN 'queued' THEN 'failed'
                    ELSE status END,
                failure = CASE WHEN status IN ('sending', 'queued') THEN %(failure)s::json ELSE failure END,
                is_behind = false, due_at = NULL, leased_until = NULL, claim = claim + 1
            WHERE id IN (
                SELECT id FROM messages
                WHERE conversation_id = ANY(%(ids)s)
                    AND (is_behind OR (due_at IS NOT NULL AND (leased_until > now()) IS NOT TRUE))
                ORDER BY is_behind DESC, id LIMIT %(limit)s FOR NO KEY UPDATE SKIP LOCKED)
            RETURNING id
            """,
            {"failure": json.dumps(DELETED).decode(), "ids": conversation_ids, "limit": limit},
        )
        if failed:
            recorder = Recorder(workspace_id)
            for contact_id, data in _bodies([message_id for (message_id,) in failed]):
                recorder.record("message.failed", data, contact_id)
            fan_out.write(recorder)
    return len(failed)


def _bodies(message_ids: Sequence[str]) -> list[tuple[str, dict[str, Any]]]:
    """The `data` of the events of these messages, as far as they have failed and their contacts are there."""
    failed = Message.select().where(Message.id.in_(list(message_ids)), Message.status == "failed")
    found = list(failed.order_by(Message.id))
    contact_of = {row.id: row for row in Contact.select().where(Contact.id.in_([row.contact_id for row in found]))}
    conversation_ids = [row.conversation_id for row in found]
    conversation_of = {row.id: row for row in Conversation.select().where(Conversation.id.in_(conversation_ids))}
    return [
        (
            message.contact_id,
            {
                "contact": contacts.represent(contact_of[message.contact_id]),
                "conversation": conversations.represent(conversation_of[message.conversation_id]),
                "message": messages.represent(message),
            },
        )
        for message in found
        if message.contact_id in contact_of
    ]

"""Deletes a channel: closes its conversations, and fails its waiting messages and files."""

from __future__ import annotations

from peewee import fn

from app.channels.kinds import CHANNEL_KINDS
from app.database import count, rows, transaction
from app.domain.channels import channel_requests
from app.domain.conversations import conversation_changes, conversations, message_endings, scheduled_messages
from app.domain.work import audit
from app.domain.work.changes import Change, Effect
from app.models.channels import Channel

# The most rows of a table that one transaction changes.
PART = 200
# The channels deleted within a day: messages and files may still be added to them, or be in progress.
_DELETED = "SELECT id FROM channels WHERE deleted_at > now() - interval '1 day'"
IS_ANY_DELETED = f"EXISTS ({_DELETED})"
DELETED = {"code": "channel_deleted", "detail": "The channel was deleted before this could be sent."}


def delete(change: Change) -> Effect | None:
    """Deletes the channel, then closes its conversations and ends its scheduled messages, in parts.

    Returns None if another part is left. Also asks the provider to end the connection. `end_waiting` ends the channel's
    other messages and its files. Raises NotFound, Busy.
    """
    if change.progress is None:
        _begin(change, Channel.find(change.workspace_id, change.target))
        change.keep(after="")
        return None
    after = _close_some(change, change.progress["after"])
    if after is None and not scheduled_messages.end_some(change, change.target, DELETED, PART):
        return Effect("deleted", "channel", change.target)
    change.keep(after=after or change.progress["after"])
    return None


def end_waiting(limit: int = PART) -> int:
    """Fails waiting messages and files of recently deleted channels; returns how many.

    Leaves out a message that a worker is sending, as long as the lease lasts. If the worker died, the message becomes
    `unknown`.
    """
    ended = 0
    for (channel_id,) in rows(_DELETED):
        ended += _end_messages(channel_id, limit)
        ended += count(
            """
            UPDATE uploads SET problem = 'channel_deleted', due_at = NULL, next_attempt_at = NULL, claim = claim + 1
            WHERE id = ANY(ARRAY(
                SELECT id FROM uploads
                WHERE channel_id = %s AND due_at IS NOT NULL AND (leased_until > now()) IS NOT TRUE
                LIMIT %s FOR NO KEY UPDATE SKIP LOCKED))
            """,
            (channel_id, limit),
        )
    return ended


def _begin(change: Change, channel: Channel) -> None:
    Channel.update(deleted_at=fn.now(), state="disconnected", problem=None).where(Channel.id == channel.id).execute()
    kind = CHANNEL_KINDS.get(channel.kind)
    if kind is None or kind.has_provider:
        channel_requests.ask(channel.workspace_id, channel.id, "disconnect")
    else:
        Channel.update(credentials=None).where(Channel.id == channel.id).execute()
    audit.record(change, "channel", channel.id, {"kind": channel.kind, "name": channel.name})


def _close_some(change: Change, after: str) -> str | None:
    """Closes up to PART open conversations after the id `after`; returns the last one, None if none."""
    found = rows(
        """
        SELECT id, contact_id FROM conversations
        WHERE channel_id = %s AND id > %s AND status = 'open' ORDER BY id LIMIT %s
        """,
        (change.target, after, PART),
    )
    return conversation_changes.change_some(change, found, conversations.close)


def _end_messages(channel_id: str, limit: int) -> int:
    """Ends up to `limit` due messages and messages that wait behind them; returns how many."""
    with transaction():
        talks = [conversation_id for (conversation_id,) in rows(_TALKS, (channel_id, limit))]
        if not talks:
            return 0
        return len(message_endings.end(talks, _WAITING, (talks, talks, limit), _FREE, DELETED))


_TALKS = """
    SELECT id FROM conversations WHERE id = ANY(ARRAY(
        SELECT conversation_id FROM messages
        WHERE channel_id = %s AND due_at IS NOT NULL AND (leased_until > now()) IS NOT TRUE LIMIT %s))
    ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
"""
_FREE = "(leased_until > now()) IS NOT TRUE"
_WAITING = f"""
    SELECT id FROM messages WHERE conversation_id = ANY(%s) AND due_at IS NOT NULL AND {_FREE}
    UNION ALL SELECT id FROM messages WHERE conversation_id = ANY(%s) AND is_behind
    ORDER BY id LIMIT %s
"""

"""Chats: stores the messages and receipts of web chats' visitors, and shows visitors the chat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from app import bounds, realtime
from app.bounds import Bound
from app.channels.inbound import Media, Receipt, Received
from app.channels.web_chat import WebChat
from app.database import rows
from app.domain.channels import arrivals, media
from app.domain.channels.visitors import Visitor
from app.domain.people.message_access import SHOWN_TO_VISITOR
from app.errors import Conflict, Fault, Invalid
from app.lib import clock
from app.models.channels import Channel
from app.models.conversations import Message

MOST_SHOWN = 50
# The most files that a visitor may have uploaded but not sent.
MOST_UPLOADS = 20
_MOST_READ = 100
# How many of a conversation's latest messages have buttons that can be pressed.
MOST_OFFERING = 100
_COLUMNS = (
    *("id", "direction", "text", "attachments", "buttons", "button_id", "status"),
    *("provider_id", "provider_time", "created_at", "edited_at"),
)


def say(
    channel: Channel,
    visitor: Visitor,
    client_id: str,
    text: str | None,
    upload_ids: Sequence[str] = (),
    locale: str | None = None,
    button_id: str | None = None,
) -> None:
    """Stores a message of the visitor. Safe to repeat with the page's `client_id`.

    `button_id`: the button that was pressed, whose label becomes the text. Raises Invalid for a message without text
    and files, for files that the visitor may not send, and for a button that the visitor was not offered.
    """
    if button_id is not None:
        text = _label(visitor, button_id)
    if not text and not upload_ids:
        raise Invalid(Fault("/text", "Give a text or a file."))
    _check_uploads(visitor, upload_ids)
    key = _key(visitor.id, client_id)
    received = Received(
        key=key,
        sender=visitor.id,
        peer=visitor.peer,
        provider_id=key,
        at=clock.now(),
        text=text or None,
        media=[Media(upload_id) for upload_id in upload_ids],
        locale=locale,
        button_id=button_id,
    )
    arrivals.store(channel, [received])


def storage_bounds(visitor: Visitor, address: str) -> dict[str, Bound]:
    """Returns the bounds of the visitor's next file. Raises Conflict if MOST_UPLOADS are unsent."""
    waiting = rows("SELECT count(*) FROM uploads WHERE visitor_id = %s AND message_id IS NULL", (visitor.id,))[0][0]
    if waiting >= MOST_UPLOADS:
        raise Conflict("Send the files that are uploaded first.")
    allowed = {
        address: bounds.STORED_PER_ADDRESS,
        visitor.channel_id: bounds.STORED_PER_CHANNEL,
        visitor.workspace_id: bounds.STORED_BY_CONTACTS,
    }
    if visitor.contact_id is None:
        allowed[visitor.id] = bounds.STORED_PER_NEW_VISITOR
    return allowed


def message_ids(channel_id: str, peer: str | None, limit: int) -> list[str]:
    """Returns the ids of up to `limit` messages of visitors with that peer, shown to them or not."""
    found = rows(
        """
        SELECT messages.id FROM conversations JOIN messages ON messages.conversation_id = conversations.id
        WHERE conversations.channel_id = %s AND peer = %s LIMIT %s
        """,
        (channel_id, peer, limit),
    )
    return [id for (id,) in found]


def read(channel: Channel, visitor: Visitor, message_id: str) -> None:
    """Records that the visitor has seen the message and all before it. Safe to repeat."""
    seen = rows(
        f"""
        SELECT messages.id FROM conversations JOIN messages ON messages.conversation_id = conversations.id
        WHERE conversations.channel_id = %(channel_id)s AND peer = %(peer)s AND direction = 'out'
            AND messages.status IN ('sent', 'delivered')
            AND (coalesce(provider_time, messages.created_at), messages.id) <= (
                SELECT coalesce(provider_time, created_at), id FROM messages
                WHERE id = %(seen)s AND channel_id = %(channel_id)s)
        ORDER BY coalesce(provider_time, messages.created_at) DESC, messages.id DESC LIMIT {_MOST_READ}
        """,
        {"channel_id": channel.id, "peer": visitor.peer, "seen": message_id},
    )
    at = clock.now()
    receipts = [
        Receipt(f"read:{found}", visitor.id, found, at, "read", message_id=found) for (found,) in reversed(seen)
    ]
    if receipts:
        arrivals.store(channel, receipts)


def tell_typing(visitor: Visitor) -> None:
    """Shows members that the visitor is typing. Does nothing before the conversation has begun."""
    found = rows(
        "SELECT max(id) FROM conversations WHERE channel_id = %s AND peer = %s", (visitor.channel_id, visitor.peer)
    )[0][0]
    if found is not None and visitor.contact_id is not None:
        author = {"type": "contact", "id": visitor.contact_id}
        realtime.typing(visitor.workspace_id, found, author, None, None)


def history(channel: Channel, visitor: Visitor, before: str | None = None) -> list[dict[str, Any]]:
    """Returns the last MOST_SHOWN messages that the visitor may see (before `before`), oldest first."""
    found = rows(
        f"""
        SELECT shown.* FROM conversations CROSS JOIN LATERAL (
            SELECT {", ".join(_COLUMNS)}
            FROM messages WHERE conversation_id = conversations.id AND {SHOWN_TO_VISITOR}
                AND (%(before)s::text IS NULL OR (coalesce(provider_time, created_at), id) < (
                    SELECT coalesce(provider_time, created_at), id FROM messages
                    WHERE id = %(before)s AND conversation_id = conversations.id AND {SHOWN_TO_VISITOR}))
            ORDER BY coalesce(provider_time, created_at) DESC, id DESC LIMIT {MOST_SHOWN}
        ) AS shown
        WHERE channel_id = %(channel_id)s AND peer = %(peer)s
        ORDER BY coalesce(provider_time, shown.created_at) DESC, shown.id DESC LIMIT {MOST_SHOWN}
        """,
        {"channel_id": channel.id, "peer": visitor.peer, "before": before},
    )
    return [represent(visitor.id, Message(**dict(zip(_COLUMNS, each, strict=True)))) for each in reversed(found)]


def unread(channel: Channel, visitor: Visitor) -> int:
    """Returns how many messages in the visitor's latest conversation no member has read."""
    found = rows(
        "SELECT unread FROM conversations WHERE channel_id = %s AND peer = %s ORDER BY id DESC LIMIT 1",
        (channel.id, visitor.peer),
    )
    return int(found[0][0]) if found else 0


def represent(visitor_id: str, message: Message) -> dict[str, Any]:
    """Returns the message as the visitor sees it. `client_id`: the id from the page, if any."""
    own, key = _key(visitor_id, ""), message.provider_id or ""
    return {
        "id": message.id,
        "client_id": key.removeprefix(own) if message.direction == "in" and key.startswith(own) else None,
        "direction": message.direction,
        "text": message.text,
        "attachments": media.shown(message.attachments),
        "buttons": message.buttons or [],
        "button_id": message.button_id,
        "status": message.status,
        "at": message.provider_time or message.created_at,
        "edited_at": message.edited_at,
    }


def _label(visitor: Visitor, button_id: str) -> str:
    """Returns the button's label in the last message that offers it. Raises Invalid if none does."""
    found = rows(
        f"""
        SELECT button->>'label' FROM conversations CROSS JOIN LATERAL (
            SELECT id, buttons FROM messages
            WHERE conversation_id = conversations.id AND {SHOWN_TO_VISITOR} ORDER BY id DESC LIMIT {MOST_OFFERING}
        ) AS offer CROSS JOIN LATERAL json_array_elements(buttons) AS button
        WHERE channel_id = %s AND peer = %s AND button->>'id' = %s
        ORDER BY offer.id DESC LIMIT 1
        """,
        (visitor.channel_id, visitor.peer, button_id),
    )
    if not found:
        raise Invalid(Fault("/button_id", "None of the latest messages to this visitor has this button."))
    return str(found[0][0])


def _check_uploads(visitor: Visitor, upload_ids: Sequence[str]) -> None:
    if not upload_ids:
        return
    if len(upload_ids) > WebChat.most_files:
        raise Invalid(Fault("/uploads", f"A message has at most {WebChat.most_files} files."))
    if len(set(upload_ids)) < len(upload_ids):
        raise Invalid(Fault("/uploads", "A file is given twice."))
    # Also finds the files of a message that is repeated, because files keep their `visitor_id`.
    found = rows(
        "SELECT id FROM uploads WHERE id = ANY(%s) AND workspace_id = %s AND visitor_id = %s AND file IS NOT NULL",
        (list(upload_ids), visitor.workspace_id, visitor.id),
    )
    if len(found) < len(upload_ids):
        raise Invalid(Fault("/uploads", "There is no such file of this visitor. Unsent files are kept for an hour."))


def _key(visitor_id: str, client_id: str) -> str:
    """Returns the key of a message, unique in the channel: no visitor can take another visitor's key."""
    return f"{visitor_id}:{client_id}"

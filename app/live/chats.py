"""Chats: messages as the visitor of a web chat may see them."""

from __future__ import annotations

from typing import Any

from app.domain import media
from app.models.conversations import Message

_SENT = ("sent", "delivered", "read")


def is_shown(message: Message) -> bool:
    """Whether the visitor may see it: what it wrote, and what it has been sent."""
    return message.direction == "in" or message.status in _SENT


def represent(visitor_id: str, message: Message) -> dict[str, Any]:
    """The message as the visitor sees it; `client_id` is the page's own identifier of a message from there."""
    own, key = f"{visitor_id}:", message.provider_id or ""
    return {
        "id": message.id,
        "client_id": key.removeprefix(own) if message.direction == "in" and key.startswith(own) else None,
        "direction": message.direction,
        "text": message.text,
        "attachments": media.shown(message.attachments),
        "status": message.status,
        "at": message.provider_time or message.created_at,
        "edited_at": message.edited_at,
    }

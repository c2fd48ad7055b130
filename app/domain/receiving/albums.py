"""Albums: joins files that a contact sent together, each as its own message, into one message."""

from __future__ import annotations

from app.database import rows
from app.domain.work.units import Unit
from app.models.conversations import Conversation, Message

# How many of a conversation's newest messages are searched for the album's message.
LOOKED_AT = 30


def message_of(unit: Unit, conversation: Conversation, album: str | None) -> Message | None:
    """Returns the message with the album's first file, locked; None if there is none. Raises Busy."""
    if album is None:
        return None
    name = _name(conversation, album)
    if name not in unit.notes:
        found = rows(
            """
            SELECT id FROM (
                SELECT id, album FROM messages WHERE conversation_id = %s
                ORDER BY coalesce(provider_time, created_at) DESC, id DESC LIMIT %s) AS newest
            WHERE album = %s LIMIT 1
            """,
            (conversation.id, LOOKED_AT, album),
        )
        unit.notes[name] = found[0][0] if found else None
    message_id = unit.notes[name]
    return unit.get(Message, conversation.workspace_id, "id", message_id) if message_id else None


def begin(unit: Unit, conversation: Conversation, message: Message) -> None:
    """Notes in the unit that the message is its album's first, if it belongs to an album."""
    if message.album is not None:
        unit.notes[_name(conversation, message.album)] = message.id


def _name(conversation: Conversation, album: str) -> tuple[str, str, str]:
    return ("album", conversation.id, album)

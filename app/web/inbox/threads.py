"""Threads: what a conversation says, messages and notes in one order, the oldest first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from app.domain.conversations import messages
from app.models.conversations import Conversation, Message
from app.models.notes import Note

# Messages of a page, and the notes that may stand between them.
MESSAGES, NOTES = 50, 200


@dataclass(frozen=True, slots=True)
class Entry:
    """A message, as the API shows it, or a note. `at`: when it was written."""

    at: datetime
    id: str
    message: Mapping[str, Any] | None = None
    note: Note | None = None


@dataclass(frozen=True, slots=True)
class Thread:
    """A part of a conversation. `before`: the position before which older messages lie; None: there are none."""

    entries: list[Entry]
    before: str | None


def read(conversation: Conversation, before: str | None = None) -> Thread:
    """The newest messages of the conversation, or those before that position, and the notes among them."""
    at, _, last_id = (before or "").partition("~")
    until = _time(at) if last_id else None
    found: list[Any] = Message.latest(conversation.id, at if until else None, last_id if until else None, MESSAGES + 1)
    has_more, shown = len(found) > MESSAGES, found[:MESSAGES]
    oldest = shown[-1] if has_more else None
    notes = Note.between(conversation.id, oldest.at if oldest else None, until, NOTES)
    entries = [Entry(message.at, message.id, messages.represent(message)) for message in shown]
    entries += [Entry(note.created_at, note.id, note=note) for note in notes]
    entries.sort(key=lambda entry: (entry.at, entry.id))
    return Thread(entries, f"{oldest.at.isoformat()}~{oldest.id}" if oldest else None)


def _time(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else None

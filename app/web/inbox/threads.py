"""Threads: the messages and notes of a conversation, oldest first.

Scheduled messages are listed separately, behind the thread.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from app.domain.conversations import messages
from app.models.conversations import Conversation, Message
from app.models.notes import Note
from app.web.inbox import newer_replies, views

# How many messages a page shows, and how many notes between them.
MESSAGES, NOTES = 50, 200


@dataclass(frozen=True, slots=True)
class Entry:
    """A message, as in the API, or a note. `at`: when it was written."""

    at: datetime
    id: str
    message: Mapping[str, Any] | None = None
    note: Note | None = None


@dataclass(frozen=True, slots=True)
class Thread:
    """A part of a conversation. `before`: the position of older messages; None if there are none."""

    entries: list[Entry]
    before: str | None

    @property
    def latest(self) -> list[str]:
        """The identifiers of the last messages shown, which the form sends back as `seen`."""
        shown = [entry.id for entry in self.entries if entry.message is not None]
        return shown[-newer_replies.LOOKED_AT :]


def read(conversation: Conversation, before: str | None = None) -> Thread:
    """Reads the newest messages, or the messages before a position, with the notes between them."""
    until, last_id = views.read_position(before) or (None, None)
    found: list[Any] = Message.latest(conversation.id, until, last_id, MESSAGES + 1, with_scheduled=False)
    has_more, shown = len(found) > MESSAGES, found[:MESSAGES]
    oldest = shown[-1] if has_more else None
    notes = Note.between(conversation.id, oldest.at if oldest else None, until, NOTES)
    entries = [Entry(message.at, message.id, messages.represent(message)) for message in shown]
    entries += [Entry(note.created_at, note.id, note=note) for note in notes]
    entries.sort(key=lambda entry: (entry.at, entry.id))
    return Thread(entries, views.written_position(oldest.at, oldest.id) if oldest else None)

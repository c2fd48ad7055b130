"""Threads: the messages and notes of a conversation, and answers that a member has not seen yet.

Scheduled messages are listed separately, behind the thread.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from app.domain.conversations import messages
from app.errors import Conflict
from app.models.conversations import Conversation, Message
from app.models.notes import Note
from app.web.inbox import views

# How many messages a page shows, and how many notes between them.
MESSAGES, NOTES = 50, 200
# How many messages the form lists as seen, and how many of the conversation's latest are compared with that list.
LOOKED_AT = 20
LONGEST_SEEN = LOOKED_AT * 31
_PEOPLE = ("member", "api", "provider")


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
        return shown[-LOOKED_AT:]


class NewerReply(Conflict):
    """Somebody else has answered, and the member has not seen it yet."""

    def __init__(self, replies: list[Message]) -> None:
        super().__init__("Somebody else has answered since you began to write. Read it, then send yours or change it.")
        self.replies = replies


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


def refuse_unseen(conversation: Conversation, seen: Collection[str], me: str) -> None:
    """Raises NewerReply if one of the latest messages is another person's answer not in `seen`."""
    latest = Message.latest(conversation.id, None, None, LOOKED_AT, with_scheduled=False)
    replies = [each for each in reversed(latest) if _is_anothers(each, me) and each.id not in seen]
    if replies:
        raise NewerReply(replies)


def _is_anothers(message: Message, me: str) -> bool:
    """Whether a person other than `me`, and not an automation, wrote the message to the contact."""
    is_sent = message.direction == "out" and message.status != "failed"
    return is_sent and message.author["type"] in _PEOPLE and message.author["id"] != me

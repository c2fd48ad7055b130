"""Newer replies: detects answers by somebody else since a member began to write."""

from __future__ import annotations

from collections.abc import Collection

from app.errors import Conflict
from app.models.conversations import Conversation, Message

# How many messages the form lists as seen, and how many of the conversation's latest are compared with that list.
LOOKED_AT = 20
LONGEST_SEEN = LOOKED_AT * 31
_PEOPLE = ("member", "api", "provider")


class NewerReply(Conflict):
    """Somebody else has answered, and the member has not seen it yet."""

    def __init__(self, replies: list[Message]) -> None:
        super().__init__("Somebody else has answered since you began to write. Read it, then send yours or change it.")
        self.replies = replies


def check(conversation: Conversation, seen: Collection[str], me: str) -> None:
    """Raises NewerReply if one of the latest messages is another person's answer not in `seen`."""
    latest = Message.latest(conversation.id, None, None, LOOKED_AT, with_scheduled=False)
    replies = [each for each in reversed(latest) if _is_anothers(each, me) and each.id not in seen]
    if replies:
        raise NewerReply(replies)


def _is_anothers(message: Message, me: str) -> bool:
    """Whether a person other than `me`, and not an automation, wrote the message to the contact."""
    is_sent = message.direction == "out" and message.status != "failed"
    return is_sent and message.author["type"] in _PEOPLE and message.author["id"] != me

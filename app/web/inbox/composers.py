"""Composers: what the form below a conversation offers the viewer."""

from __future__ import annotations

from typing import Any

from app.domain.conversations import messages, scheduled_messages
from app.models.conversations import Conversation, Message
from app.models.drafts import Draft
from app.models.macros import Macro
from app.models.saved_replies import SavedReply
from app.web.access import viewer, workspace_id

MOST_MACROS, MOST_REPLIES = 100, 100
LATER_CHOICES = ("in 1 hour", "tomorrow 9:00", "monday 9:00")


def shown(conversation: Conversation) -> dict[str, Any]:
    """Returns the composer's template variables: draft, macros, saved replies, scheduled messages."""
    macros = Macro.newest(workspace_id(), None, None, MOST_MACROS)
    replies = SavedReply.newest(workspace_id(), None, None, MOST_REPLIES)
    member_id = viewer().member_id
    return {
        "draft": Draft.of(member_id, conversation.id) if member_id else None,
        "macros": sorted(macros, key=lambda macro: macro.name.casefold()),
        "saved_replies": sorted(replies, key=lambda reply: reply.folded),
        "later": later(conversation),
        "later_choices": LATER_CHOICES,
    }


def later(conversation: Conversation) -> list[dict[str, Any]]:
    """Returns the conversation's scheduled messages, as in the API, the next one first."""
    if not conversation.scheduled:
        return []
    of_it = {"conversation_id": conversation.id}
    found = Message.scheduled(of_it, None, None, scheduled_messages.MOST_OF_CONVERSATION)
    return [messages.represent(message) for message in found]


def begun_in(conversation_ids: list[str]) -> set[str]:
    """Returns the conversations in which the viewer has a draft."""
    member_id = viewer().member_id
    return Draft.begun_in(member_id, conversation_ids) if member_id else set()

"""Labels of conversations: names by which members sort their inbox.

Callers have locked the contact.
"""

from __future__ import annotations

from collections.abc import Iterable

from app.domain.conversations import conversations
from app.domain.work.changes import Change
from app.errors import Fault, Invalid
from app.models.contacts import Contact
from app.models.conversations import Conversation

MOST_LABELS = 20
TOO_MANY = f"A conversation has at most {MOST_LABELS} labels."


def replace(change: Change, contact: Contact, conversation: Conversation, labels: Iterable[str]) -> Conversation:
    """Replaces the conversation's labels, and records an event if they change.

    Raises Invalid for more than MOST_LABELS.
    """
    before, after = set(conversation.labels), set(labels)
    if len(after) > MOST_LABELS:
        raise Invalid(Fault("/labels", TOO_MANY))
    if before == after:
        return conversation
    labelled = conversations.alter(change.unit, conversation, labels=sorted(after))
    data = {"added": sorted(after - before), "removed": sorted(before - after)}
    conversations.record(change, "conversation.labelled", contact, labelled, **data)
    return labelled

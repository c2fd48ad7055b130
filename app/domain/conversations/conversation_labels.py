"""Labels of conversations: names by which members sort their inbox.

Labels that a reader takes for equal, such as "Refund" and "refund", are one label, in the spelling that came first.
Callers have locked the contact.
"""

from __future__ import annotations

from collections.abc import Collection

from app.domain.conversations import conversations
from app.domain.work.changes import Change
from app.errors import Fault, Invalid
from app.lib.normalization import folded
from app.models.contacts import Contact
from app.models.conversations import Conversation

MOST_LABELS = 20
TOO_MANY = f"A conversation has at most {MOST_LABELS} labels."


def replace(change: Change, contact: Contact, conversation: Conversation, labels: Collection[str]) -> Conversation:
    """Replaces the conversation's labels, and records an event if they change.

    Labels that it has already keep their spelling. Raises Invalid for more than MOST_LABELS.
    """
    spelled = {folded(each): each for each in [*conversation.labels, *labels][::-1]}
    before, after = set(conversation.labels), {spelled[folded(each)] for each in labels}
    if len(after) > MOST_LABELS:
        raise Invalid(Fault("/labels", TOO_MANY))
    if before == after:
        return conversation
    labelled = conversations.alter(change.unit, conversation, labels=sorted(after))
    data = {"added": sorted(after - before), "removed": sorted(before - after)}
    conversations.record(change, "conversation.labelled", contact, labelled, **data)
    return labelled


def has(conversation: Conversation, label: str) -> bool:
    """Whether the conversation has the label, in any spelling."""
    return folded(label) in map(folded, conversation.labels)


def without(conversation: Conversation, removed: Collection[str]) -> list[str]:
    """Returns the conversation's labels but for the removed ones, in any spelling."""
    gone = set(map(folded, removed))
    return [each for each in conversation.labels if folded(each) not in gone]

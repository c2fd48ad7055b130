"""Changes to conversations: status, assignee, labels, snoozes, reading.

Labels that fold to the same text, such as "Refund" and "refund", are one label, spelled as it came first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from app.domain.conversations import conversations, read_receipts, snoozes
from app.domain.people import conversation_notifications, members
from app.domain.work.changes import Change, Effect
from app.domain.work.units import Busy
from app.errors import Fault, Invalid
from app.lib.normalization import folded
from app.models import sets
from app.models.contacts import Contact
from app.models.conversations import Conversation
from app.models.sets import Key

MOST_LABELS = 20
TOO_MANY = f"A conversation has at most {MOST_LABELS} labels."


def needs(workspace_id: str, payload: Mapping[str, Any], conversation_id: str | None) -> list[Key]:
    """Returns the keys that `update` reads from its unit: the conversation and the payload's contact."""
    contact = sets.key(Contact, workspace_id, "id", payload["contact_id"])
    return [contact, sets.key(Conversation, workspace_id, "id", str(conversation_id))]


def update(change: Change) -> Effect:
    """Makes the payload's changes to the conversation. Raises NotFound, Invalid, Conflict, Busy."""
    contact, conversation = conversations.hold(change, change.target)
    apply(change, contact, conversation, change.payload)
    return Effect("changed", "conversation", conversation.id)


def apply(
    change: Change,
    contact: Contact,
    conversation: Conversation,
    wanted: Mapping[str, Any],
    by: Mapping[str, str] | None = None,
) -> Conversation:
    """Makes the changes in `wanted` (fields of PATCH). Returns the same object if nothing changed.

    The caller has locked the contact. `by`: the author of an assignment; None for the change's author. Raises Invalid
    for an unknown member or too many labels, Conflict for a snooze of a closed conversation, and Busy.
    """
    if "assignee_id" in wanted:
        conversation = conversations.assign(change, contact, conversation, wanted["assignee_id"], by)
    if "labels" in wanted:
        conversation = set_labels(change, contact, conversation, wanted["labels"])
    if "status" in wanted:
        opens = wanted["status"] == "open"
        conversation = (conversations.reopen if opens else conversations.close)(change, contact, conversation)
    if (until := wanted.get("snoozed_until")) is not None:
        until = until if isinstance(until, datetime) else datetime.fromisoformat(until)
        conversation = snoozes.snooze(change, contact, conversation, until)
    elif conversation.snoozed_until is not None and "snoozed_until" in wanted:
        conversation = snoozes.wake(change, contact, conversation)
        conversation_notifications.woken(change.unit, conversation, change.author["id"])
    if wanted.get("read"):
        conversation_notifications.read(conversation.id, change.author["id"])
        if conversation.unread:
            read_receipts.add(change.unit, conversation)
            conversation = conversations.alter(change.unit, conversation, unread=0)
    return conversation


def change_some(
    change: Change, found: Sequence[tuple[str, str]], verb: Callable[[Change, Contact, Conversation], object]
) -> str | None:
    """Applies `verb` to the conversations in `found`, up to one that another transaction has locked.

    `found`: pairs of a conversation's and its contact's identifiers. Only verbs without `needs` may call this. Returns
    the last conversation that was handled; None if `found` is empty. Raises Busy if the first one is locked.
    """
    unit, workspace_id = change.unit, change.workspace_id
    unit.read(sets.key(Contact, workspace_id, "id", contact_id) for _, contact_id in found)
    free = [row for row in found if unit.is_free(sets.key(Contact, workspace_id, "id", row[1]))]
    unit.read(sets.key(Conversation, workspace_id, "id", conversation_id) for conversation_id, _ in free)
    last: str | None = None
    for conversation_id, contact_id in found:
        try:
            with unit.attempt():
                contact = unit.get(Contact, workspace_id, "id", contact_id)
                conversation = unit.get(Conversation, workspace_id, "id", conversation_id)
                if contact is not None and conversation is not None:
                    verb(change, contact, conversation)
        except Busy:
            if last is None:
                raise
            return last
        last = conversation_id
    return last


def check(workspace_id: str, payload: Mapping[str, Any], *_: object) -> None:
    """Raises Invalid for an assignee outside the workspace, and for a snooze to a time out of range."""
    snoozes.check(payload.get("snoozed_until"))
    assignee_id = payload.get("assignee_id")
    if assignee_id is not None and not members.exists(workspace_id, assignee_id):
        raise Invalid(conversations.NO_MEMBER)


def has_label(conversation: Conversation, label: str) -> bool:
    """Whether the conversation has the label, in any spelling."""
    return folded(label) in map(folded, conversation.labels)


def labels_without(conversation: Conversation, removed: Collection[str]) -> list[str]:
    """Returns the conversation's labels without those in `removed`, in any spelling."""
    gone = set(map(folded, removed))
    return [each for each in conversation.labels if folded(each) not in gone]


def set_labels(change: Change, contact: Contact, conversation: Conversation, labels: Collection[str]) -> Conversation:
    """Replaces the conversation's labels, and returns the conversation. A change records an event.

    Labels that the conversation has already keep their spelling. Raises Invalid for more than MOST_LABELS.
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


# Buttons of the inbox: for the `do` of an action, a function that returns the fields of PATCH that it stands for.
ACTIONS: Mapping[str, Callable[[Conversation, Mapping[str, Any]], dict[str, Any]]] = {
    "assign": lambda conversation, action: {"assignee_id": action["assignee_id"]},
    "label": lambda conversation, action: {"labels": [*conversation.labels, action["label"]]},
    "unlabel": lambda conversation, action: {"labels": labels_without(conversation, [action["label"]])},
    "snooze": lambda conversation, action: {"snoozed_until": datetime.fromisoformat(action["until"])},
    "wake": lambda conversation, action: {"snoozed_until": None},
    "close": lambda conversation, action: {"status": "closed"},
    "open": lambda conversation, action: {"status": "open"},
    "read": lambda conversation, action: {"read": True},
}

"""Changes to conversations by members and the API: status, assignee, labels, snoozes, reading."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from app.domain.conversations import conversation_labels, conversations, read_receipts, snoozes
from app.domain.people import members, news
from app.domain.work.changes import Change, Effect
from app.domain.work.units import Busy
from app.errors import Invalid
from app.models import sets
from app.models.contacts import Contact
from app.models.conversations import Conversation
from app.models.sets import Key


def needs(workspace_id: str, payload: Mapping[str, Any], conversation_id: str | None) -> list[Key]:
    """Returns the keys that `update` reads from its unit: the conversation, and the payload's contact."""
    contact = sets.key(Contact, workspace_id, "id", payload["contact_id"])
    return [contact, sets.key(Conversation, workspace_id, "id", str(conversation_id))]


def update(change: Change) -> Effect:
    """Opens, closes, assigns, labels or snoozes the conversation, or marks it read.

    Raises NotFound, Invalid, Conflict, Busy.
    """
    contact, conversation = conversations.hold(change, change.target)
    payload = change.payload
    if "assignee_id" in payload:
        conversation = conversations.assign(change, contact, conversation, payload["assignee_id"])
    if "labels" in payload:
        conversation = conversation_labels.replace(change, contact, conversation, payload["labels"])
    if "status" in payload:
        opens = payload["status"] == "open"
        conversation = (conversations.reopen if opens else conversations.close)(change, contact, conversation)
    if payload.get("snoozed_until") is not None:
        until = datetime.fromisoformat(payload["snoozed_until"])
        conversation = snoozes.snooze(change, contact, conversation, until)
    elif conversation.snoozed_until is not None and "snoozed_until" in payload:
        conversation = snoozes.wake(change, contact, conversation)
        news.woken(change.unit, conversation, change.author["id"])
    if payload.get("read"):
        news.read(conversation.id, change.author["id"])
    if payload.get("read") and conversation.unread:
        read_receipts.add(change.unit, conversation)
        conversations.alter(change.unit, conversation, unread=0)
    return Effect("changed", "conversation", conversation.id)


def change_some(
    change: Change, found: Sequence[tuple[str, str]], verb: Callable[[Change, Contact, Conversation], object]
) -> str | None:
    """Applies `verb` to the conversations in `found`, up to the first locked by another transaction.

    `found`: identifiers of conversations and their contacts. For verbs without `needs`. Returns the last conversation
    that was handled; None if `found` is empty. Raises Busy if the first one is locked.
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
    """Raises Invalid for an assignee outside the workspace, or an impossible snooze time."""
    snoozes.check(payload.get("snoozed_until"))
    assignee_id = payload.get("assignee_id")
    if assignee_id is not None and not members.exists(workspace_id, assignee_id):
        raise Invalid(conversations.NO_MEMBER)

"""Notifications about conversations: the notifications that a change to a conversation creates.

A mention creates a notification for each note. Of the other kinds, each member has at most one notification for a
conversation, however often its event happens; an unassigned conversation has one for all members. A database trigger
deletes these when the conversation is closed or reassigned. Nobody is notified of their own actions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.database import rows
from app.domain.work.units import Unit
from app.lib import ids
from app.models.conversations import Conversation
from app.models.notes import Note
from app.models.notifications import Notification


def assigned(unit: Unit, conversation: Conversation, *actor_ids: str | None) -> None:
    """Notifies the assignee of the assignment.

    `actor_ids`: the ids of the members who assigned it, or on whose behalf it was assigned. An assignee among them is
    not notified.
    """
    if conversation.assignee_id is not None and conversation.assignee_id not in actor_ids:
        _tell(unit, "assigned", conversation, conversation.assignee_id)


def contact_wrote(unit: Unit, conversation: Conversation) -> None:
    """Notifies the assignee of a contact's message.

    In an unassigned conversation, notifies all members, but only of the first message that waits for an answer.
    `conversation`: its state before the message.
    """
    if conversation.assignee_id is not None:
        _tell(unit, "contact_wrote", conversation, conversation.assignee_id)
    elif conversation.waiting_since is None:
        _tell(unit, "new_conversation", conversation, None)


def woken(unit: Unit, conversation: Conversation, actor_id: str | None = None) -> None:
    """Notifies the assignee that the snooze has ended. `actor_id`: the member who ended it, if any.

    An assignee who ended it is not notified.
    """
    if conversation.assignee_id is not None and conversation.assignee_id != actor_id:
        _tell(unit, "woken", conversation, conversation.assignee_id)


def mentioned(unit: Unit, note: Note, member_id: str) -> None:
    """Notifies a member that the note mentions them."""
    detail = {"note_id": note.id, "conversation_id": note.conversation_id}
    _add(unit, "mentioned", note.workspace_id, note.conversation_id, member_id, f"{note.id} {member_id}", detail)


def read(conversation_id: str, member_id: str) -> None:
    """Deletes the member's notifications about the conversation, as read. Safe to repeat."""
    rows(
        """
        DELETE FROM notifications WHERE id IN (
            SELECT id FROM notifications WHERE conversation_id = %s AND member_id = %s ORDER BY once, kind FOR UPDATE)
        """,
        (conversation_id, member_id),
    )


def _tell(unit: Unit, kind: str, conversation: Conversation, member_id: str | None) -> None:
    once = f"{conversation.id} {member_id}" if member_id else str(conversation.id)
    detail = {"conversation_id": conversation.id}
    _add(unit, kind, conversation.workspace_id, conversation.id, member_id, once, detail)


def _add(
    unit: Unit,
    kind: str,
    workspace_id: str,
    conversation_id: str,
    member_id: str | None,
    once: str,
    detail: Mapping[str, Any],
) -> None:
    unit.append(
        Notification(
            id=ids.new("ntf"),
            workspace_id=workspace_id,
            member_id=member_id,
            kind=kind,
            once=once,
            detail=detail,
            conversation_id=conversation_id,
            created_at=unit.now,
        )
    )

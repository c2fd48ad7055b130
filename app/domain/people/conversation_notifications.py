"""Notifications about conversations: the notifications that a change to a conversation creates.

A mention creates a notification for each note. Of the other kinds, each member has at most one for a conversation,
however often its event happens; an unassigned conversation has one for all members. A database trigger deletes these
when the conversation is closed or reassigned. Nobody is notified of their own actions.
"""

from __future__ import annotations

from app.database import rows
from app.domain.work.units import Unit
from app.lib import ids
from app.models.conversations import Conversation
from app.models.notes import Note
from app.models.notifications import Notification


def assigned(unit: Unit, conversation: Conversation, *actor_ids: str | None) -> None:
    """Notifies the assignee of the assignment, unless the assignee is among `actor_ids`.

    `actor_ids`: the members who assigned the conversation, or on whose behalf it was assigned.
    """
    if conversation.assignee_id is not None and conversation.assignee_id not in actor_ids:
        _notify(unit, "assigned", conversation, conversation.assignee_id)


def contact_wrote(unit: Unit, conversation: Conversation) -> None:
    """Notifies the assignee of a contact's message.

    In an unassigned conversation, notifies all members, but only of the first message that waits for an answer.
    `conversation`: its state before the message.
    """
    if conversation.assignee_id is not None:
        _notify(unit, "contact_wrote", conversation, conversation.assignee_id)
    elif conversation.waiting_since is None:
        _notify(unit, "new_conversation", conversation, None)


def woken(unit: Unit, conversation: Conversation, actor_id: str | None = None) -> None:
    """Notifies the assignee that the snooze has ended, unless the assignee (`actor_id`) ended it."""
    if conversation.assignee_id is not None and conversation.assignee_id != actor_id:
        _notify(unit, "woken", conversation, conversation.assignee_id)


def mentioned(unit: Unit, note: Note, member_id: str) -> None:
    """Notifies a member that the note mentions them."""
    _notify(unit, "mentioned", note, member_id)


def read(conversation_id: str, member_id: str) -> None:
    """Deletes the member's notifications about the conversation, as read. Safe to repeat."""
    rows(
        """
        DELETE FROM notifications WHERE id IN (
            SELECT id FROM notifications WHERE conversation_id = %s AND member_id = %s ORDER BY once, kind FOR UPDATE)
        """,
        (conversation_id, member_id),
    )


def _notify(unit: Unit, kind: str, about: Conversation | Note, member_id: str | None) -> None:
    note = {"note_id": about.id} if isinstance(about, Note) else {}
    conversation_id = about.conversation_id if isinstance(about, Note) else about.id
    notification = Notification(
        id=ids.new("ntf"),
        workspace_id=about.workspace_id,
        member_id=member_id,
        kind=kind,
        once=f"{about.id} {member_id}" if member_id else str(about.id),
        detail={**note, "conversation_id": conversation_id},
        conversation_id=conversation_id,
        created_at=unit.now,
    )
    unit.append(notification)

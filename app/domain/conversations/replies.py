"""Replies: each inbound message reaches one run at most, and of the runs in a conversation one at most waits for it.

Callers of these functions have locked the contact. So of a reply and a timeout the first wins: both only make the run
due, and the run is read again under the lock before it goes on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.database import rows
from app.domain.conversations import conversations
from app.domain.triggers import run_states
from app.domain.work.units import Unit
from app.lib import ids
from app.lib.json import timestamp
from app.models.conversations import Conversation, Message
from app.models.runs import Run


def take(unit: Unit, conversation: Conversation, message: Message) -> Message:
    """Gives a new message to the run that waits for a reply in the conversation; returns it with that run's identifier.

    The run is due once the transaction commits. The message is returned as it is if no run waits. Raises Busy.
    """
    run = _waiting(unit, conversation)
    if run is None:
        return message
    run_states.wake(unit, run, answer=answer_of(message))
    conversations.alter(unit, conversation, waiting_run_id=None)
    return message.altered(run_id=run.id)


def is_awaited(unit: Unit, conversation: Conversation) -> bool:
    """Whether a run is waiting for a reply in the conversation. Raises Busy."""
    return _waiting(unit, conversation) is not None


def expect(unit: Unit, conversation: Conversation, run: Run) -> None:
    """Lets the run wait for the next reply in the conversation.

    An older run that waits for it is due instead, with an answer that names the newer one. Raises Busy.
    """
    older = _waiting(unit, conversation)
    if older is not None and older.id != run.id:
        run_states.wake(unit, older, answer={"taken_over_by": run.id})
    conversations.alter(unit, conversation, waiting_run_id=run.id)


def arrived(unit: Unit, conversation: Conversation, run: Run) -> Message | None:
    """The first message since the run's latest prompt that no run has taken; the run takes it."""
    # Nothing can have come in since this unit queued the prompt: it has the contact.
    if run.prompted is None or unit.is_new(Message, run.workspace_id, run.prompted):
        return None
    # Identifiers are of the clocks of several machines; the times are the database's.
    found = rows(
        """
        SELECT id FROM messages WHERE conversation_id = %s AND id > %s AND direction = 'in' AND run_id IS NULL
            AND created_at > (SELECT created_at FROM messages WHERE id = %s)
        ORDER BY created_at, id LIMIT 1
        """,
        (conversation.id, ids.around("msg", ids.time_of(run.prompted), -1), run.prompted),
    )
    message = unit.get(Message, run.workspace_id, "id", found[0][0]) if found else None
    return unit.put(message.altered(run_id=run.id)) if message else None


def answer_of(message: Message) -> Mapping[str, Any]:
    """The answer that a run gets, from which its step makes its result."""
    at = timestamp(message.created_at)
    answer = {"text": message.text, "button_id": message.button_id, "message_id": message.id, "at": at}
    return answer if message.data is None else {**answer, "data": message.data}


def _waiting(unit: Unit, conversation: Conversation) -> Run | None:
    """The run that waits for a reply in the conversation and does not have one yet."""
    if conversation.waiting_run_id is None:
        return None
    run = unit.get(Run, conversation.workspace_id, "id", conversation.waiting_run_id)
    if run is None or run.waits_for != "reply" or run.answer is not None or run.conversation_id != conversation.id:
        return None
    return run

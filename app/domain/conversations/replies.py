"""Replies: each inbound message reaches at most one run, the one that waits in the conversation.

Callers have locked the contact. If a reply arrives as the wait times out, the first of the two wins: both make the run
due, and the run is read again under the lock before it continues.
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
    """Gives a new message to the run that waits for a reply in the conversation, which becomes due.

    Returns the message with the run's identifier; unchanged if no run waits. Raises Busy.
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
    """Makes the run wait for the next reply in the conversation. Raises Busy.

    An older run that waits for it becomes due, with an answer that names the newer run.
    """
    older = _waiting(unit, conversation)
    if older is not None and older.id != run.id:
        run_states.wake(unit, older, answer={"taken_over_by": run.id})
    conversations.alter(unit, conversation, waiting_run_id=run.id)


def arrived(unit: Unit, conversation: Conversation, run: Run) -> Message | None:
    """Assigns the first unassigned message since the run's prompt to the run; returns it, or None."""
    # No message can have arrived since this unit queued the prompt, because it has locked the contact.
    if run.prompted is None or unit.is_new(Message, run.workspace_id, run.prompted):
        return None
    # The `id` only narrows the search: ids come from the clocks of several machines, `created_at` from the database.
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
    """Returns the answer from which the waiting step of a run makes its result."""
    at = timestamp(message.created_at)
    answer = {"text": message.text, "button_id": message.button_id, "message_id": message.id, "at": at}
    return answer if message.data is None else {**answer, "data": message.data}


def _waiting(unit: Unit, conversation: Conversation) -> Run | None:
    """Returns the run that waits for a reply in the conversation and has no answer yet, if any."""
    if conversation.waiting_run_id is None:
        return None
    run = unit.get(Run, conversation.workspace_id, "id", conversation.waiting_run_id)
    if run is None or run.waits_for != "reply" or run.answer is not None or run.conversation_id != conversation.id:
        return None
    return run

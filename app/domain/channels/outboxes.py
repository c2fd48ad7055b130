"""Outboxes: of each conversation's unfinished messages, only the first is mail.

Callers must have locked the conversation. Recording that a message is finished locks the conversation too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import partial
from typing import Any

from app import mailbox
from app.database import database, rows
from app.domain.work.units import Unit
from app.mailbox import Mail
from app.models.conversations import Conversation

# While a channel is not connected or is paused for its provider, its messages do not count as waiting.
MAIL = Mail(
    table="messages",
    owner="channel_id",
    queue="messages",
    owners="LEFT JOIN LATERAL (SELECT * FROM channels WHERE id = mail.channel_id LIMIT 1) AS channels ON true",
    paused_until="""CASE WHEN channels.state <> 'connected' OR channels.deleted_at IS NOT NULL THEN now()
        ELSE channels.paused_until END""",
    paced_until="channels.paced_until",
)


def prefetch(unit: Unit, conversation_ids: Iterable[str]) -> None:
    """Reads which of the conversations have unfinished messages, with one statement for all."""
    wanted = [each for each in set(conversation_ids) if _unfinished(each) not in unit.notes]
    if not wanted:
        return
    found = rows(
        "SELECT conversation_id FROM messages WHERE due_at IS NOT NULL AND conversation_id = ANY(%s)", (wanted,)
    )
    unit.notes |= {_unfinished(each): (each,) in found for each in wanted}


def place(unit: Unit, conversation: Conversation) -> Mapping[str, Any]:
    """Returns the fields of a message that is queued now. Rings after the commit if it is due."""
    key = _unfinished(conversation.id)
    prefetch(unit, [conversation.id])
    is_behind, unit.notes[key] = unit.notes[key], True
    if is_behind:
        return {"status": "queued", "is_behind": True, "due_at": None}
    ring_later(conversation.channel_id)
    due_at = max(unit.now, conversation.paced_until or unit.now)
    return {"status": "queued", "is_behind": False, "due_at": due_at}


def ring_later(channel_id: str) -> None:
    """Rings for the channel's messages when the transaction commits."""
    database.after_commit(partial(mailbox.ring, MAIL, channel_id))


def ring_connected(channel_ids: Collection[str]) -> int:
    """Rings for the channels whose messages may be sent now; returns how many."""
    served = rows(
        """
        SELECT id FROM channels
        WHERE id = ANY(%s) AND state = 'connected' AND deleted_at IS NULL
            AND (paused_until BETWEEN now() AND now() + interval '1 hour') IS NOT TRUE
        """,
        (list(channel_ids),),
    )
    for (channel_id,) in served:
        mailbox.ring(MAIL, channel_id)
    return len(served)


def _unfinished(conversation_id: str) -> tuple[str, str]:
    return ("has unfinished messages", conversation_id)

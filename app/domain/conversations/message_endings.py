"""Ends waiting messages for an operator or a deleted channel, and settles abandoned messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from app.database import rows, transaction
from app.domain.conversations import message_statuses, sending_outcomes
from app.domain.conversations.message_statuses import INTERRUPTED
from app.domain.conversations.sendings import LEASE_SECONDS, Sending
from app.domain.work import audit
from app.lib import json
from app.mailbox import Claimed

CANCELLED = {"code": "cancelled", "detail": "The operator cancelled the message before it was sent."}
# How long a claim that had begun when the channel was stopped may still take.
GRACE_SECONDS = 20.0
# The most channels, and the most messages per channel, that one pass handles.
MOST_SETTLED = 200


def cancel(message_ids: Sequence[str]) -> set[str]:
    """Fails the queued messages among `message_ids`; returns their identifiers.

    Skips messages that a worker is sending or whose conversation is locked.
    """
    with transaction():
        talks = [conversation_id for (conversation_id,) in rows(_TALKS, (list(message_ids),))]
        of_these = "SELECT id FROM messages WHERE id = ANY(%s) AND conversation_id = ANY(%s)"
        cancelled = end(talks, of_these, (list(message_ids), talks), "status = 'queued'", CANCELLED)
        for message_id, workspace_id, _ in cancelled:
            audit.note(workspace_id, None, "messages.cancel", "message", message_id)
    return {message_id for message_id, *_ in cancelled}


def end(
    talks: Sequence[str], chosen: str, parameters: Sequence[Any], only: str, failure: Mapping[str, Any]
) -> list[tuple[str, str, str]]:
    """Ends the messages that the query `chosen` finds, if `only` holds once they are locked.

    Makes the next message of each conversation due. Skips messages that other transactions have locked. `talks`: the
    conversations, which the caller has locked. Returns the identifier, workspace and new status of each message.
    """
    ended = rows(_END.format(chosen=chosen, only=only), (json.dumps(failure).decode(), *parameters))
    rows(_BRING_UP, (list(talks),))
    sending_outcomes.tell([message_id for message_id, _, status in ended if status == "failed"])
    return ended


def settle_interrupted() -> int:
    """Marks abandoned messages as `unknown` in channels that are not connected; returns how many.

    A message is abandoned if its lease ended without an outcome. In connected channels, claims settle such messages.
    Because a channel's backlog may be large, it is checked only once after it was stopped: when all leases on its
    messages must have ended.
    """
    stopped = rows(
        """
        SELECT id, stopped_at FROM channels WHERE stopped_at < now() - %s * interval '1 second'
        ORDER BY stopped_at LIMIT %s
        """,
        (LEASE_SECONDS + GRACE_SECONDS, MOST_SETTLED),
    )
    settled = 0
    for channel_id, stopped_at in stopped:
        lost = _lost(channel_id)
        later, _ = sending_outcomes.record(lost)
        settled += len(lost) - len(later)
        if not lost:
            rows("UPDATE channels SET stopped_at = NULL WHERE id = %s AND stopped_at = %s", (channel_id, stopped_at))
    return settled


def _lost(channel_id: str) -> list[Sending]:
    abandoned = """
        SELECT id, claim, conversation_id FROM messages
        WHERE channel_id = %s AND due_at IS NOT NULL AND leased_until < now() LIMIT %s
    """
    found = rows(abandoned, (channel_id, MOST_SETTLED))
    return [Sending(Claimed(id, channel_id, claim), talk_id, INTERRUPTED) for id, claim, talk_id in found]


_TALKS = """
    SELECT id FROM conversations WHERE id = ANY(ARRAY(SELECT conversation_id FROM messages WHERE id = ANY(%s)))
    ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
"""

_END = f"""
    UPDATE messages
    SET failure = CASE WHEN {message_statuses.IS_ENDED_BY_IT} THEN %s::json ELSE failure END,
        {message_statuses.ENDING}
    WHERE id IN (
        SELECT id FROM messages WHERE id = ANY(ARRAY({{chosen}})) AND {{only}} ORDER BY id
        FOR NO KEY UPDATE SKIP LOCKED)
    RETURNING id, workspace_id, status
"""

# In each conversation without a due message, makes the first waiting message due.
_BRING_UP = """
    UPDATE messages SET due_at = now(), is_behind = false
    FROM unnest(%s::text[]) AS talk(id) CROSS JOIN LATERAL (
        SELECT id FROM messages AS behind
        WHERE behind.conversation_id = talk.id AND behind.is_behind ORDER BY created_at, id LIMIT 1) AS next
    WHERE messages.id = next.id AND NOT EXISTS (
        SELECT FROM messages AS first WHERE first.conversation_id = talk.id AND first.due_at IS NOT NULL)
"""

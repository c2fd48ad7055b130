"""Settles messages whose worker died and whose channel was disconnected while they were sent."""

from __future__ import annotations

from app.database import rows
from app.domain.conversations import sending_outcomes
from app.domain.conversations.message_statuses import INTERRUPTED
from app.domain.conversations.sendings import LEASE_SECONDS, Sending
from app.mailbox import Claimed

# How long a claim that had begun when the channel was stopped may still take.
GRACE_SECONDS = 20.0
# The most channels, and the most messages per channel, that one pass handles.
PART = 200


def settle() -> int:
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
        (LEASE_SECONDS + GRACE_SECONDS, PART),
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
    found = rows(
        """
        SELECT id, claim, conversation_id FROM messages
        WHERE channel_id = %s AND due_at IS NOT NULL AND leased_until < now() LIMIT %s
        """,
        (channel_id, PART),
    )
    return [
        Sending(Claimed(message_id, channel_id, number), conversation_id, INTERRUPTED)
        for message_id, number, conversation_id in found
    ]

"""Statuses of messages: when a receipt raises one, how messages end, when one becomes `unknown`.

A claim makes a message `sending` and commits that before the first byte is sent. From then on only the provider knows
whether the message was sent, so Bellhop never sends it again by itself. The message becomes `unknown`

- if the provider's answer does not reveal the outcome, or none arrives: the verdict is UNKNOWN (`app/channels`);
- if its worker dies: INTERRUPTED, by the next claim or, in a channel that is not connected, `message_endings`;
- if its outcome cannot be recorded: UNRECORDED;
- if no worker sends it any more and its channel or contact is deleted: ENDING.

A receipt settles an unknown message (`may_rise`). A member or the API may send it again (`may_be_sent_again`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from app.channels.base import Outcome, Verdict
from app.models.conversations import Message

Status = Literal["received", "scheduled", "queued", "sending", "sent", "delivered", "read", "failed", "unknown"]

# The kind of event that is recorded for a status.
EVENTS = {
    "received": "message.received",
    "sent": "message.sent",
    "delivered": "message.delivered",
    "read": "message.read",
    "failed": "message.failed",
}
# The next status of a `sending` message. `record_sendings.sql` keeps one that a receipt has already raised.
OF_OUTCOMES: Mapping[Outcome, Status] = {
    Outcome.SENT: "sent",
    Outcome.FAILED: "failed",
    Outcome.UNKNOWN: "unknown",
    Outcome.LATER: "queued",
    Outcome.UNAUTHORIZED: "queued",
}
INTERRUPTED = Verdict(
    Outcome.UNKNOWN, code="interrupted", detail="Sending was interrupted, and it is not known whether it succeeded."
)
UNRECORDED = Verdict(Outcome.UNKNOWN, code="error", detail="Bellhop could not record what the provider answered.")

# Assignments of an UPDATE that ends messages. The new claim number voids outcomes that workers have yet to record.
ENDING = """
    status = CASE WHEN status IN ('scheduled', 'queued') THEN 'failed' WHEN status = 'sending' THEN 'unknown'
        ELSE status END,
    send_at = NULL, is_behind = false, due_at = NULL, leased_until = NULL, claim = claim + 1
"""
IS_ENDED_BY_IT = "status IN ('scheduled', 'queued', 'sending')"
# The failure of messages whose contact was deleted.
ERASED = '{"code": "erased", "detail": null}'

# In ascending order. A delivered message can no longer fail, but a failed one may turn out to have been delivered.
_RANKS = ("queued", "sending", "unknown", "sent", "failed", "delivered", "read")


def may_rise(message: Message, status: str) -> bool:
    """Whether a receipt's `status` says more about the message than is known."""
    is_on_its_way = message.direction == "out" and message.status != "scheduled"
    return is_on_its_way and _RANKS.index(status) > _RANKS.index(message.status)


def may_be_sent_again(message: Message) -> bool:
    """Whether a member or the API may send the message again."""
    return message.direction == "out" and message.status in ("failed", "unknown")

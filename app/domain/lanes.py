"""Lanes: endpoints that were slow of late have a queue and processes of their own, and hold up nobody else."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from app import bells, mailbox
from app.config import settings
from app.database import count, rows
from app.lib import clock
from app.mailbox import Mail

# A bell for what falls due is heard within this time; what has been due for longer is the scheduler's.
JUST_NOW_SECONDS = 1.0
# A lease that ends before its attempt is recorded only means a second attempt.
RECORDING_SECONDS = 5
SLOW_SECONDS = 60.0  # how long an endpoint stays in the slow lane after it was last seen to be slow


def _lane(queue: str, condition: str) -> Mail:
    return Mail(
        table="deliveries",
        owner="endpoint_id",
        queue=queue,
        order="due_at",
        carries=("event_id", "kind", "step"),
        guard=f"""EXISTS (
            SELECT FROM endpoints
            WHERE endpoints.id = mail.endpoint_id AND endpoints.state = 'active' AND {condition})""",
    )


FAST = _lane("deliveries", "(endpoints.slow_until > now()) IS NOT TRUE")
SLOW = _lane("slow-deliveries", "endpoints.slow_until > now()")


def lease_seconds() -> float:
    """How long a delivery is taken for: an attempt, and the time to record it."""
    return settings().webhook_timeout_seconds + RECORDING_SECONDS


def of(slow_until: datetime | None) -> Mail:
    return SLOW if slow_until is not None and slow_until > clock.now() else FAST


def ring(endpoint_ids: Collection[str]) -> None:
    """Rings for each of the endpoints that is active, in the lane that it is in now."""
    lanes = "SELECT id, slow_until FROM endpoints WHERE id = ANY(%s) AND state = 'active'"
    for endpoint_id, slow_until in rows(lanes, (list(endpoint_ids),)):
        mailbox.ring(of(slow_until), endpoint_id)


def slow_down(endpoint_ids: Collection[str]) -> None:
    """Moves endpoints that were seen to be slow to the slow lane, or keeps them in it."""
    count(
        """
        UPDATE endpoints SET slow_until = now() + %s * interval '1 second' WHERE id IN (
            SELECT id FROM endpoints
            WHERE id = ANY(%s) AND (slow_until > now() + %s * interval '1 second') IS NOT TRUE
            ORDER BY id FOR NO KEY UPDATE)
        """,
        (SLOW_SECONDS, list(endpoint_ids), SLOW_SECONDS / 2),
    )


def speed_up(endpoint_ids: Collection[str]) -> None:
    """Moves endpoints that have recovered back."""
    count(
        """
        UPDATE endpoints SET slow_until = NULL WHERE id IN (
            SELECT id FROM endpoints WHERE id = ANY(%s) AND slow_until IS NOT NULL ORDER BY id FOR NO KEY UPDATE)
        """,
        (list(endpoint_ids),),
    )


# Retries


def retry_queues() -> dict[str, int]:
    """The queue of each delay of the schedule, and the delay in seconds: in one queue the order is that of time."""
    return {retry_queue(seconds): seconds for seconds in settings().retry_schedule_seconds}


def retry_queue(seconds: int) -> str:
    return f"deliveries-retry-{seconds}s"


def ring_later(seconds: int) -> None:
    """Rings when what was put off by so many seconds is due; `ring_due` is to hear it."""
    bells.ring_later(retry_queue(seconds), seconds)


def ring_due() -> None:
    """Rings for the endpoints of which a retry fell due just now. Costs what fell due, not what waits."""
    query = """
        SELECT DISTINCT endpoint_id FROM deliveries
        WHERE step > 0 AND due_at <= now() AND due_at > now() - %s * interval '1 second' AND leased_until IS NULL
    """
    if due := [endpoint_id for (endpoint_id,) in rows(query, (JUST_NOW_SECONDS,))]:
        ring(due)

"""Lanes: slow endpoints have a separate queue and processes, so that they do not delay others."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple

from app import mailbox
from app.config import settings
from app.database import count, rows
from app.lib import clock
from app.mailbox import Mail, Waiting

# The time to record an outcome. If a lease ends earlier, the only harm is a second attempt.
RECORDING_SECONDS = 5
SLOW_SECONDS = 60.0  # how long an endpoint stays in the slow lane after a slow answer


class Carried(NamedTuple):
    """Columns that are loaded with a claimed delivery. `tries`: the attempts of its current schedule."""

    event_id: str
    kind: str
    tries: int


# The endpoint is unordered, or its oldest unfinished delivery is due and not leased.
_IS_IN_ORDER = """(NOT endpoints.ordered OR (
    SELECT due_at <= now() AND (leased_until > now()) IS NOT TRUE FROM deliveries
    WHERE (endpoint_id, (status = 'pending')) >= (endpoints.id, true)
        AND (endpoint_id, (status = 'pending')) <= (endpoints.id, true)
        AND status IN ('pending', 'held', 'failed')
    ORDER BY endpoint_id, (status = 'pending'), id LIMIT 1))"""


def _lane(queue: str, condition: str) -> Mail:
    return Mail(
        table="deliveries",
        owner="endpoint_id",
        queue=queue,
        order="due_at",
        carries=Carried,
        # Waiting for a probe, a rate limit or the previous delivery is not worker lag.
        owners="LEFT JOIN LATERAL (SELECT * FROM endpoints WHERE id = mail.endpoint_id LIMIT 1) AS endpoints ON true",
        paused_until="CASE WHEN endpoints.state <> 'active' THEN now() ELSE endpoints.probe_at END",
        paced_until=f"""CASE WHEN endpoints.ordered AND {_IS_IN_ORDER} IS NOT TRUE THEN now()
            ELSE endpoints.paced_until END""",
        slow="endpoints.slow_until > now()",
        guard=f"""EXISTS (
            SELECT FROM endpoints
            WHERE endpoints.id = mail.endpoint_id AND endpoints.state = 'active' AND endpoints.probe_at IS NULL
                AND endpoints.max_per_second IS NULL AND NOT endpoints.ordered AND {condition})""",
    )


FAST = _lane("deliveries", "(endpoints.slow_until > now()) IS NOT TRUE")
SLOW = _lane("slow-deliveries", "endpoints.slow_until > now()")


def lease_seconds() -> float:
    """Returns how long a claim lasts: an attempt's deadline plus the time to record its outcome."""
    return settings().webhook_timeout_seconds + RECORDING_SECONDS


def of(slow_until: datetime | None) -> Mail:
    """Returns the lane of an endpoint that is slow until `slow_until`; None if it is not slow."""
    return SLOW if slow_until is not None and slow_until > clock.now() else FAST


def ring(endpoint_ids: Collection[str]) -> None:
    """Rings for the endpoints that may be served now, each in its lane.

    Skips endpoints that are stopped, that wait for a probe or their rate limit, and ordered ones whose first delivery
    waits or is in progress.
    """
    lanes = f"""
        SELECT id, slow_until FROM endpoints
        WHERE id = ANY(%s) AND state = 'active' AND (probe_at > now()) IS NOT TRUE
            AND (paced_until > now()) IS NOT TRUE AND {_IS_IN_ORDER}
    """
    for endpoint_id, slow_until in rows(lanes, (list(endpoint_ids),)):
        mailbox.ring(of(slow_until), endpoint_id)


def slow_down(endpoint_ids: Collection[str]) -> None:
    """Moves endpoints to the slow lane, or extends their time in it. Never waits: skips locked rows."""
    count(
        """
        UPDATE endpoints SET slow_until = now() + %s * interval '1 second' WHERE id IN (
            SELECT id FROM endpoints
            WHERE id = ANY(%s) AND (slow_until > now() + %s * interval '1 second') IS NOT TRUE
            ORDER BY id FOR NO KEY UPDATE SKIP LOCKED)
        """,
        (SLOW_SECONDS, list(endpoint_ids), SLOW_SECONDS / 2),
    )


def speed_up(endpoint_ids: Collection[str]) -> None:
    """Moves recovered endpoints back to the fast lane. Never waits: skips locked rows."""
    count(
        """
        UPDATE endpoints SET slow_until = NULL WHERE id IN (
            SELECT id FROM endpoints
            WHERE id = ANY(%s) AND slow_until IS NOT NULL ORDER BY id FOR NO KEY UPDATE SKIP LOCKED)
        """,
        (list(endpoint_ids),),
    )


# A retry joins its endpoint's lane when it falls due.
WAITING = Waiting(FAST, "next_attempt_at", ring)

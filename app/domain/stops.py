"""Stops: endpoints whose failures are counted, and that are stopped when they have failed too often."""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from app.config import settings
from app.database import count
from app.lib import clock
from app.models.endpoints import Endpoint
from app.outbound import Answer

log = structlog.get_logger(__name__)


def count_outcomes(outcomes: Sequence[tuple[str, Answer]]) -> dict[str, str]:
    """Counts completed attempts, (endpoint, answer) in their order, and stops endpoints that have failed too often.

    Runs inside the transaction that records the attempts. Returns the state of each endpoint that failed at least
    once; an endpoint that is not active any more is not counted further.
    """
    failing = sorted({endpoint_id for endpoint_id, answer in outcomes if not answer.ok})
    states: dict[str, str] = {}
    for endpoint in Endpoint.locked(failing) if failing else []:
        _count(endpoint, [answer for endpoint_id, answer in outcomes if endpoint_id == endpoint.id])
        states[endpoint.id] = endpoint.state
    _reset({endpoint_id for endpoint_id, _ in outcomes} - set(failing))
    return states


def _count(endpoint: Endpoint, answers: Sequence[Answer]) -> None:
    threshold = settings().stop_after_failures
    for answer in answers:
        if endpoint.state != "active":
            break
        endpoint.consecutive_failures = 0 if answer.ok else endpoint.consecutive_failures + 1
        if answer.status == 410:
            _stop(endpoint, "The receiver answered 410 Gone.")
        elif endpoint.consecutive_failures >= threshold:
            _stop(endpoint, f"{threshold} attempts in a row failed. The last: {answer.error}")
    if endpoint.dirty_fields:
        endpoint.save(only=endpoint.dirty_fields)


def _stop(endpoint: Endpoint, reason: str) -> None:
    endpoint.state, endpoint.stop_reason, endpoint.stopped_at = "stopped", reason, clock.now()
    log.warning("endpoint.stopped", endpoint=endpoint.id, reason=reason)


def _reset(succeeding: set[str]) -> None:
    # Touches a row only where the count is not 0, so that healthy endpoints do not fight for theirs.
    count(
        """
        UPDATE endpoints SET consecutive_failures = 0 WHERE id IN (
            SELECT id FROM endpoints WHERE id = ANY(%s) AND consecutive_failures > 0 AND state = 'active'
            ORDER BY id FOR NO KEY UPDATE)
        """,
        (list(succeeding),),
    )

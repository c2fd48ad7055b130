"""Stops: endpoints whose failures are counted, and that are stopped when they have failed too often."""

from __future__ import annotations

import re
from collections.abc import Sequence

import structlog

from app import metrics
from app.config import settings
from app.domain import sweeps
from app.lib import clock
from app.models.endpoints import Endpoint
from app.outbound import Answer

log = structlog.get_logger(__name__)

# Where a redirect led may repeat a contact's data, and a reason is not erased with the contact.
REDIRECT_TARGET = re.compile(r"(?<=^Redirects are not followed \(\d{3}) to .*(?=\)\.$)")


def count_outcomes(endpoints: Sequence[Endpoint], outcomes: Sequence[tuple[str, Answer]]) -> None:
    """Counts completed attempts, (endpoint, answer) in their order, and stops endpoints that have failed too often.

    Runs inside the transaction that records the attempts; `endpoints` are locked by it. One that is not active any
    more is not counted further.
    """
    for endpoint in endpoints:
        _count(endpoint, [answer for endpoint_id, answer in outcomes if endpoint_id == endpoint.id])


def _count(endpoint: Endpoint, answers: Sequence[Answer]) -> None:
    threshold = settings().stop_after_failures
    for answer in answers:
        if endpoint.state != "active":
            break
        endpoint.consecutive_failures = 0 if answer.ok else endpoint.consecutive_failures + 1
        endpoint.answered = answer.ok
        if answer.status == 410:
            metrics.ENDPOINTS_STOPPED.labels("gone").inc()
            _stop(endpoint, "The receiver answered 410 Gone.")
        elif endpoint.consecutive_failures >= threshold:
            metrics.ENDPOINTS_STOPPED.labels("failures").inc()
            last_error = REDIRECT_TARGET.sub("", str(answer.error))
            _stop(endpoint, f"{threshold} attempts in a row failed. The last: {last_error}")
    if endpoint.dirty_fields:
        endpoint.save(only=endpoint.dirty_fields)


def _stop(endpoint: Endpoint, reason: str) -> None:
    endpoint.state, endpoint.stop_reason, endpoint.stopped_at = "stopped", reason, clock.now()
    sweeps.begin(endpoint.workspace_id, endpoint.id, "hold", ["pending"], trace_id="")
    log.warning("endpoint.stopped", endpoint=endpoint.id, reason=reason)

"""Stops: counts endpoints' failures, and probes, stops and reports endpoints that keep failing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import structlog
from peewee import SQL

from app import metrics
from app.config import settings
from app.database import rows
from app.domain.deliveries import fan_out, sweeps
from app.domain.people import notifications
from app.domain.work.events import Recorder
from app.lib import clock
from app.models.endpoints import Endpoint
from app.outbound import Answer

log = structlog.get_logger(__name__)

# After this many consecutive failures, an endpoint is probed: it gets one attempt at a time.
PROBED_AFTER = 5
# The pause before the next probe: this share of the outage so far, but at least LEAST_PAUSE_SECONDS.
PAUSE_PART = 0.2
LEAST_PAUSE_SECONDS = 1.5
# The most deliveries that a stop counts. The dispatcher, which serves all endpoints, waits for the count.
MOST_COUNTED = 10_000


def count_outcomes(endpoint: Endpoint, outcomes: Sequence[tuple[Answer, bool]]) -> None:
    """Counts the outcomes of attempts in order: pairs of an answer and whether it was for a probe.

    Probes or stops endpoints. Does not count faults on our side. Runs in the transaction that records the attempts and
    has locked `endpoint`. Does nothing if the endpoint is no longer active.
    """
    for answer, is_probe in outcomes:
        if endpoint.state != "active":
            break
        if answer.ok:
            endpoint.consecutive_failures, endpoint.probe_at = 0, None
        elif answer.is_ours:
            if is_probe:
                endpoint.probe_at = _next_probe(endpoint)
        else:
            _count_failure(endpoint, answer, is_probe)
    if endpoint.dirty_fields:
        endpoint.save(only=endpoint.dirty_fields)


def _count_failure(endpoint: Endpoint, answer: Answer, is_probe: bool) -> None:
    is_gone = answer.status == 410
    if endpoint.probe_at is not None and not (is_probe or is_gone):
        # The attempt was in flight when probing began. If such attempts counted, a full window of them would stop an
        # endpoint that only restarts.
        return
    endpoint.consecutive_failures += 1
    if endpoint.consecutive_failures == 1 or endpoint.failing_since is None:
        endpoint.failing_since = SQL("now()")  # PostgreSQL's clock: workers on several machines compare this time
    threshold = settings().stop_after_failures
    if is_gone:
        metrics.ENDPOINTS_STOPPED.labels("gone").inc()
        _stop(endpoint, "The receiver answered 410 Gone.")
    elif endpoint.consecutive_failures >= threshold:
        metrics.ENDPOINTS_STOPPED.labels("failures").inc()
        # Omits the redirect's target: it may contain contact data, and reasons are never erased.
        _stop(endpoint, f"{threshold} attempts in a row failed. The last: {answer.error_without_target}")
    else:
        endpoint.probe_at = _next_probe(endpoint)


def _next_probe(endpoint: Endpoint) -> SQL | None:
    """Returns when the next probe may be sent to a failing endpoint; None if it is not being probed.

    The pause grows with the outage, not with the number of failures. So it takes hours until an endpoint is stopped,
    however much is sent to it, and the end of a short outage is noticed soon.
    """
    longest = settings().probe_pause_seconds
    if endpoint.consecutive_failures < PROBED_AFTER or not longest:
        return None
    # This becomes part of an UPDATE, in which `failing_since` still has its old value.
    since = "now()" if isinstance(endpoint.failing_since, SQL) else "failing_since"
    pause = f"least(%s, greatest(%s, %s * extract(epoch FROM now() - {since})))"
    return SQL(f"now() + {pause} * interval '1 second'", (longest, LEAST_PAUSE_SECONDS, PAUSE_PART))


def represent(endpoint: Endpoint, held: int) -> dict[str, Any]:
    """Returns the `data` of an `endpoint.stopped` event."""
    return {
        "endpoint": {
            "id": endpoint.id,
            "address": endpoint.address,
            "stop_reason": endpoint.stop_reason,
            "stopped_at": endpoint.stopped_at,
        },
        "held_deliveries": held,
    }


def _stop(endpoint: Endpoint, reason: str) -> None:
    endpoint.state, endpoint.stop_reason, endpoint.stopped_at = "stopped", reason, clock.now()
    endpoint.probe_at = None
    sweeps.begin(endpoint.workspace_id, endpoint.id, "hold", ["pending"], trace_id="")
    recorder = Recorder(endpoint.workspace_id)
    recorder.record("endpoint.stopped", represent(endpoint, _count_unfinished(endpoint.id)))
    fan_out.write(recorder, but=endpoint.id)
    detail = {"endpoint_id": endpoint.id, "address": endpoint.address, "reason": reason}
    notifications.note(endpoint.workspace_id, "endpoint_stopped", f"{endpoint.id} {endpoint.stopped_at}", detail)
    log.warning("endpoint.stopped", endpoint=endpoint.id, reason=reason)


def _count_unfinished(endpoint_id: str) -> int:
    """Counts the deliveries that the stop holds, among the MOST_COUNTED first in the index."""
    counted = """
        SELECT count(*) FROM (
            SELECT status FROM deliveries
            WHERE endpoint_id >= %s AND endpoint_id <= %s AND status IN ('pending', 'held', 'failed')
            ORDER BY endpoint_id DESC, (status = 'pending') DESC, id DESC LIMIT %s) AS newest
        WHERE status <> 'failed'
    """
    return int(rows(counted, (endpoint_id, endpoint_id, MOST_COUNTED))[0][0])

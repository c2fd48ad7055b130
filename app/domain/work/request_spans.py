"""Spans of the requests that runs make, and the trace ids of runs."""

from __future__ import annotations

import time
from collections.abc import Collection
from urllib.parse import urlsplit

from app.database import rows
from app.domain.work.request_attempts import Outcome
from app.logs import tracing


def add(outcomes: Collection[Outcome]) -> None:
    """Adds a span for each request that runs have made. Does nothing if tracing is off."""
    if tracing.spans is None or not outcomes:
        return
    now, traces = time.time(), traces_of({outcome.claimed.carried.run_id for outcome in outcomes})
    for outcome in outcomes:
        claimed, answer, request = outcome.claimed, outcome.answer, outcome.dispatch.request
        if claimed.carried.run_id in traces:
            target = urlsplit(request.address)
            tracing.spans.add(
                f"{request.method} of a run",
                "CLIENT",
                traces[claimed.carried.run_id],
                tracing.span_of(claimed.id, str(claimed.claim)),
                tracing.span_of(claimed.carried.run_id),
                (now - answer.duration_ms / 1000, now),
                {
                    "http.request.method": request.method,
                    "http.request.resend_count": claimed.carried.tries or None,
                    "http.response.status_code": answer.status,
                    "server.address": target.hostname,
                    "server.port": target.port or (443 if target.scheme == "https" else 80),
                },
                answer.error_code,
            )


def traces_of(run_ids: Collection[str]) -> dict[str, str]:
    """Returns the trace ids of the runs, by run id. Leaves out runs that do not exist."""
    found = rows("SELECT id, trace_id, event_id FROM runs WHERE id = ANY(%s)", (list(run_ids),)) if run_ids else []
    return {id: tracing.trace_of(trace_id or event_id or id) for id, trace_id, event_id in found}

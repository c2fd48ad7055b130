"""Request identifiers, the access log and metrics of requests."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from random import getrandbits
from time import perf_counter, time
from typing import TYPE_CHECKING, Any

import structlog
from flask import Flask, request
from prometheus_client import Counter, Histogram
from structlog.contextvars import bind_contextvars, clear_contextvars, get_contextvars

from app import forwarding, metrics
from app.lib.request_ids import kept_or_new
from app.logs import tracing
from app.logs.tracing import Parent

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

    from app.logs.spans import Spans

_KEY = "bellhop.request_id"
_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
_PROBES = ("/healthz", "/readyz")
_log = structlog.get_logger("access")


def install(app: Flask) -> None:
    """Gives every request an identifier, a line in the access log, and metrics."""
    # Wraps Flask, so that a response has the header even if a hook fails.
    app.wsgi_app = _identified(app.wsgi_app)  # type: ignore[assignment, method-assign]


def request_id() -> str:
    """Returns the current request's identifier; generates one if the application was not wrapped."""
    environ = request.environ
    found: str = environ.get(_KEY) or environ.setdefault(_KEY, kept_or_new(None))
    return found


def _identified(wsgi_app: WSGIApplication) -> WSGIApplication:
    def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        started = perf_counter()
        parent = None if tracing.spans is None else tracing.parent_of(environ.get("HTTP_TRACEPARENT"))
        identifier = environ[_KEY] = kept_or_new(environ.get("HTTP_X_REQUEST_ID"), parent and parent.trace_id)
        bind_contextvars(request_id=identifier)
        status_line, rule = "500", None

        def start(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
            nonlocal status_line, rule
            status_line, rule = status, environ["werkzeug.request"].url_rule
            headers.append(("X-Request-Id", identifier))
            return start_response(status, headers, exc_info)

        try:
            return wsgi_app(environ, start)
        finally:
            # The route, not the path: names of tags and query strings may contain personal data.
            method, route, seconds = environ["REQUEST_METHOD"], rule and rule.rule, perf_counter() - started
            _log.info(
                "request", method=method, route=route, status=int(status_line[:3]), duration_ms=round(seconds * 1000, 2)
            )
            _count(method, route, status_line[:3], seconds)
            if route not in _PROBES:
                forwarding.note(environ.get("HTTP_X_FORWARDED_FOR", ""))
            if tracing.spans is not None and route not in _PROBES:
                _trace(tracing.spans, identifier, parent, method, route, int(status_line[:3]), seconds)
            clear_contextvars()

    return application


def _count(method: str, route: str | None, status: str, seconds: float) -> None:
    # Clients can invent methods and paths, which must not create new time series.
    requests, durations = _time_series(method if method in _METHODS else "other", route or "none", status)
    requests.inc()
    durations.observe(seconds)


@cache
def _time_series(method: str, route: str, status: str) -> tuple[Counter, Histogram]:
    # Cached, because looking metrics up by labels takes as long as counting.
    return metrics.REQUESTS.labels(method, route, status), metrics.REQUEST_SECONDS.labels(method, route)


def _trace(
    spans: Spans, identifier: str, parent: Parent | None, method: str, route: str | None, status: int, seconds: float
) -> None:
    """Adds the span of a request. If the request made a job, the span's id is derived from the job's."""
    trace_id, ended = tracing.trace_of(identifier), time()
    job_id = get_contextvars().get("job")
    method = method if method in _METHODS else "_OTHER"
    parent_id, linked = None, None
    if parent is not None and parent.trace_id == trace_id:
        parent_id = parent.span_id
    elif parent is not None:  # our trace is named after the request's identifier, so this one is only linked
        linked = parent
    spans.add(
        f"{method} {route or ''}".rstrip(),
        "SERVER",
        trace_id,
        tracing.accepting(job_id) if job_id else getrandbits(64) or 1,
        parent_id,
        (ended - seconds, ended),
        {
            "http.request.method": method,
            "http.route": route,
            "http.response.status_code": status,
            "bellhop.request.id": identifier,
            "bellhop.job.id": job_id,
        },
        str(status) if status >= 500 else None,
        linked,
    )

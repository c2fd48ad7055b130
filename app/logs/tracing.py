"""Tracing: whether this process sends spans, and identifiers that all processes derive alike.

A trace has the identifier of the request that caused it; jobs, events and runs keep that identifier. A span is named by
its subject, so a worker that has a row knows the span of the row's cause.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

import structlog

from app.config import settings

if TYPE_CHECKING:
    from app.logs.spans import Spans

REMEDY = "pip install -r requirements-tracing.txt"

_is_trace_id = re.compile(r"(?!0{32})[0-9a-f]{32}").fullmatch
_traceparent = re.compile(r"00-((?!0{32})[0-9a-f]{32})-((?!0{16})[0-9a-f]{16})-[0-9a-f]{2}").fullmatch
_log = structlog.get_logger(__name__)

# None: tracing is off. Code that would make a span checks this first.
spans: Spans | None = None


class Parent(NamedTuple):
    """The span of the caller that sent a request, as the header `traceparent` names it."""

    trace_id: str
    span_id: int


def start(service: str) -> None:
    """Turns tracing on in this process if the operator wants it.

    Never raises: no work may fail for it. Call it after the last fork, because a thread sends the spans.
    """
    global spans
    if settings().otlp_endpoint is None:
        return
    try:
        from app.logs.spans import Spans

        spans = Spans(f"bellhop-{service}")
    except ImportError as error:
        _log.warning("traces.not_installed", error=str(error), remedy=REMEDY)
    except Exception:
        _log.exception("traces.not_started")


def parent_of(traceparent: str | None) -> Parent | None:
    """Parses the header (W3C Trace Context, section 3.2); None if it is missing or unreadable."""
    found = _traceparent(traceparent) if traceparent else None
    return Parent(found[1], int(found[2], 16)) if found else None


def trace_of(request_id: str) -> str:
    """Returns the trace of a request: its identifier if that can name a trace, else a digest of it."""
    return request_id if _is_trace_id(request_id) else sha256(request_id.encode()).hexdigest()[:32]


def span_of(*names: str) -> int:
    """Returns the span that these names identify, such as a delivery and the number of its claim."""
    return int.from_bytes(sha256("/".join(names).encode()).digest()[:8]) or 1


def accepting(job_id: str) -> int:
    """Returns the span of the request that the job was accepted with."""
    return span_of(job_id, "accepted")


def of_request(method: str, address: str, tries: int, status: int | None) -> dict[str, str | int | None]:
    """Returns the attributes of the span of our HTTP request, made after `tries` earlier attempts.

    Of the address they have only the host, because the rest may contain a password or a key.
    """
    target = urlsplit(address)
    return {
        "http.request.method": method,
        "http.request.resend_count": tries or None,
        "http.response.status_code": status,
        "server.address": target.hostname,
        "server.port": target.port or (443 if target.scheme == "https" else 80),
    }


def traceparent(trace_id: str, span_id: int) -> str:
    """Returns the header that makes a receiver's spans children of this span."""
    is_sampled = spans is not None and spans.is_sampled(trace_id)
    return f"00-{trace_id}-{span_id:016x}-{is_sampled:02x}"

"""Spans of delivery attempts, and the header that names a span to the receiver."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Protocol
from urllib.parse import urlsplit

from app.logs import tracing
from app.mailbox import Claimed
from app.outbound import Answer


class Sent(Protocol):
    """A delivery being sent."""

    @property
    def claimed(self) -> Claimed:
        """The delivery's row."""

    @property
    def trace_id(self) -> str:
        """The trace of the request that caused the event; "" if none did."""

    @property
    def address(self) -> str:
        """The endpoint's address."""


def header(sent: Sent) -> dict[str, str]:
    """Returns the `traceparent` header of the claimed attempt; {} if tracing is off."""
    if tracing.spans is None:
        return {}
    return {"traceparent": tracing.traceparent(_trace_of(sent), _span_of(sent))}


def add(attempts: Iterable[tuple[Sent, datetime, Answer]]) -> None:
    """Adds the spans of attempts: (delivery, start, answer). Does nothing if tracing is off."""
    if tracing.spans is None:
        return
    for sent, at, answer in attempts:
        target, began = urlsplit(sent.address), at.timestamp()
        tracing.spans.add(
            "POST webhook",
            "CLIENT",
            _trace_of(sent),
            _span_of(sent),
            tracing.span_of(sent.claimed.carried.event_id),
            (began, began + answer.duration_ms / 1000),
            {
                "http.request.method": "POST",
                "http.request.resend_count": sent.claimed.carried.tries or None,
                "http.response.status_code": answer.status,
                # Only the host: the address may contain a password or a key.
                "server.address": target.hostname,
                "server.port": target.port or (443 if target.scheme == "https" else 80),
                "bellhop.delivery.id": sent.claimed.id,
                "bellhop.endpoint.id": sent.claimed.owner,
                "bellhop.event.kind": sent.claimed.carried.kind,
            },
            answer.error_code,
        )


def _trace_of(sent: Sent) -> str:
    return tracing.trace_of(sent.trace_id or sent.claimed.carried.event_id)


def _span_of(sent: Sent) -> int:
    return tracing.span_of(sent.claimed.id, str(sent.claimed.claim))

"""Spans: created and sent with OpenTelemetry, whose packages an operator may leave out."""

from __future__ import annotations

import logging
import re
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from multiprocessing.util import Finalize
from typing import Any, Literal, NamedTuple

import structlog
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import Sampler
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from app import metrics
from app.lib import versions

# The most spans that wait to be sent. Further ones are lost: they are worth less than the memory of a worker.
MOST_WAITING = 8_192
# The most spans in one request. A request goes out once this many have gathered, or after a second.
BATCH, EVERY_SECONDS = 512, 1.0
# How many seconds an ending process goes on sending.
GRACE_SECONDS = 2.0

_SAMPLED = TraceFlags(TraceFlags.SAMPLED)
_SCOPE = InstrumentationScope("bellhop", versions.NUMBER)
# A UUID has its version and variant where the SDK's sampler expects random bits, so it is hashed first.
_is_uuid = re.compile(r".{12}[1-8].{3}[89ab].{15}").fullmatch
_log = structlog.get_logger(__name__)


class _Span(NamedTuple):
    name: str
    kind: str
    trace_id: str
    span_id: int
    parent_id: int | None
    times: tuple[float, float]
    attributes: Mapping[str, Any]
    error: str | None
    linked: tuple[str, int] | None


class Spans:
    """Sends the spans of this process. Callers never wait; spans that cannot be sent are lost."""

    def __init__(self, service: str, exporter: SpanExporter | None = None) -> None:
        given = Resource({"service.name": service, "service.version": versions.running()})
        self._resource = given.merge(OTELResourceDetector().detect())
        self._exporter = exporter or OTLPSpanExporter()
        # The provider's sampler is the one that OTEL_TRACES_SAMPLER names.
        self.is_sampled = lru_cache(4_096)(_sampling(TracerProvider(shutdown_on_exit=False).sampler))
        self._reasons = _Reasons()
        self._waiting: deque[_Span] = deque()
        self._is_enough, self._is_stopping, self._fails = threading.Event(), threading.Event(), False
        self._thread = threading.Thread(target=self._keep_sending, name="spans", daemon=True)
        self._thread.start()
        # Runs before the logs are written out for the last time.
        Finalize(None, self.close, exitpriority=1)

    def add(
        self,
        name: str,
        kind: Literal["SERVER", "CLIENT", "PRODUCER", "CONSUMER"],
        trace_id: str,
        span_id: int,
        parent_id: int | None,
        times: tuple[float, float],
        attributes: Mapping[str, Any],
        error: str | None = None,
        linked: tuple[str, int] | None = None,
    ) -> None:
        """Queues a span that has ended, if its trace is sampled. Call it from any thread.

        `times`: its beginning and end, in Unix time. `error`: what went wrong, as one of few names; None if nothing
        did. `linked`: the trace and the span of a caller that belongs to another trace.
        """
        if not self.is_sampled(trace_id):
            return
        if len(self._waiting) >= MOST_WAITING:
            metrics.SPANS.labels("lost").inc()
            return
        self._waiting.append(_Span(name, kind, trace_id, span_id, parent_id, times, attributes, error, linked))
        if len(self._waiting) >= BATCH:
            self._is_enough.set()

    def close(self) -> None:
        """Sends the waiting spans, for GRACE_SECONDS at most, unless sending fails. Safe to repeat."""
        self._is_stopping.set()
        self._is_enough.set()
        if self._fails:
            self._exporter.shutdown()  # ends the pause before a retry
        self._thread.join(GRACE_SECONDS)

    def _keep_sending(self) -> None:
        while not self._is_stopping.is_set():
            self._is_enough.wait(EVERY_SECONDS)
            self._is_enough.clear()
            self._send()
        while self._waiting and not self._fails:
            self._send()
        metrics.SPANS.labels("lost").inc(len(self._waiting))

    def _send(self) -> None:
        while batch := [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]:
            try:
                result = self._exporter.export([self._read(span) for span in batch])
            except Exception as error:
                self._reasons.text, result = repr(error), SpanExportResult.FAILURE
            self._note(is_sent=result is SpanExportResult.SUCCESS, number=len(batch))
            if self._fails:
                return

    def _note(self, *, is_sent: bool, number: int) -> None:
        """Counts the spans. Logs only the first failure and the recovery, so that an outage fills no log."""
        metrics.SPANS.labels("sent" if is_sent else "lost").inc(number)
        if self._fails == is_sent:
            self._fails = not is_sent
            if is_sent:
                _log.info("traces.sent_again")
            else:
                _log.warning("traces.not_sent", error=self._reasons.text)

    def _read(self, span: _Span) -> ReadableSpan:
        context = _context(span.trace_id, span.span_id)
        attributes = {name: value for name, value in span.attributes.items() if value is not None}
        links: Sequence[Link] = [Link(_context(*span.linked))] if span.linked else ()
        if span.error is not None:
            attributes["error.type"] = span.error
        return ReadableSpan(
            span.name,
            context,
            None if span.parent_id is None else _context(span.trace_id, span.parent_id),
            self._resource,
            attributes,
            links=links,
            kind=SpanKind[span.kind],
            status=Status(StatusCode.UNSET if span.error is None else StatusCode.ERROR),
            start_time=int(span.times[0] * 1e9),
            end_time=int(max(span.times) * 1e9),
            instrumentation_scope=_SCOPE,
        )


class _Reasons(logging.Filter):
    """Keeps the text of the exporter's last failure, instead of a log line for each try."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""
        logging.getLogger(OTLPSpanExporter.__module__).addFilter(self)

    def filter(self, record: logging.LogRecord) -> bool:
        self.text = record.getMessage()
        return False


def _sampling(sampler: Sampler) -> Any:
    """Returns a function that tells whether spans of a trace are sent.

    The answer depends only on the trace's identifier, because other processes do not know the trace's flags.
    """

    def is_sampled(trace_id: str) -> bool:
        chance = sha256(trace_id.encode()).hexdigest()[:32] if _is_uuid(trace_id) else trace_id
        return bool(sampler.should_sample(None, int(chance, 16), "").decision.is_sampled())

    return is_sampled


def _context(trace_id: str, span_id: int) -> SpanContext:
    return SpanContext(int(trace_id, 16), span_id, is_remote=True, trace_flags=_SAMPLED)

"""A thread of its own sends the spans: no caller waits for it, and what it cannot send is dropped and counted."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from app.logs.spans import BATCH, GRACE_SECONDS, MOST_WAITING, Spans
from tests.journeys.waiting import wait_until

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


class Exporter(SpanExporter):
    """Takes spans when it is free, and answers as it is told."""

    def __init__(self) -> None:
        self.free, self.is_asked, self.result = threading.Event(), threading.Event(), SpanExportResult.SUCCESS
        self.taken: list[ReadableSpan] = []
        self.batches: list[int] = []
        self.free.set()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.is_asked.set()
        self.free.wait()
        self.batches.append(len(spans))
        if self.result is SpanExportResult.SUCCESS:
            self.taken += spans
        return self.result

    def shutdown(self) -> None:
        self.free.set()


@pytest.fixture
def exporter() -> Iterator[Exporter]:
    exporter = Exporter()
    yield exporter
    exporter.free.set()


@pytest.fixture
def spans(exporter: Exporter) -> Iterator[Spans]:
    spans = Spans("bellhop-test", exporter)
    yield spans
    exporter.free.set()
    spans.close()


def add(spans: Spans, number: int) -> None:
    for _ in range(number):
        spans.add("test", "SERVER", TRACE, 1, None, (1.0, 2.0), {"some": "value", "none": None})


def counted(outcome: str) -> float:
    return REGISTRY.get_sample_value("bellhop_spans_total", {"outcome": outcome}) or 0.0


@pytest.fixture
def lost() -> Callable[[], float]:
    before = counted("lost")
    return lambda: counted("lost") - before


def test_a_span_is_sent_within_a_second_or_so(spans: Spans, exporter: Exporter) -> None:
    add(spans, 1)

    wait_until(lambda: exporter.taken, 10, "it is sent")
    [span] = exporter.taken
    assert (span.name, span.start_time, span.end_time) == ("test", 1_000_000_000, 2_000_000_000)
    assert dict(span.attributes or {}) == {"some": "value"}
    assert span.resource.attributes["service.name"] == "bellhop-test"


def test_many_are_sent_in_batches(spans: Spans, exporter: Exporter, lost: Callable[[], float]) -> None:
    add(spans, 3 * BATCH)

    wait_until(lambda: len(exporter.taken) == 3 * BATCH, 10, "all are sent")
    assert max(exporter.batches) <= BATCH
    assert lost() == 0


def test_of_too_many_the_rest_is_lost_and_nobody_waits(
    spans: Spans, exporter: Exporter, lost: Callable[[], float]
) -> None:
    exporter.free.clear()
    add(spans, 1)
    assert exporter.is_asked.wait(10)

    add(spans, MOST_WAITING + 100)

    assert lost() == 100
    exporter.free.set()
    wait_until(lambda: len(exporter.taken) == MOST_WAITING + 1, 30, "the others are sent")


def test_what_is_not_taken_is_lost_and_logged_once(spans: Spans, exporter: Exporter, lost: Callable[[], float]) -> None:
    exporter.result = SpanExportResult.FAILURE
    with capture_logs() as logs:
        for number in range(1, 4):
            add(spans, BATCH)
            wait_until(lambda wanted=number: lost() == wanted * BATCH, 10, "they are lost")
        exporter.result = SpanExportResult.SUCCESS
        add(spans, 1)
        wait_until(lambda: exporter.taken, 10, "it works again")
        wait_until(lambda: len(logs) >= 2, 10, "that is logged")

    assert [line["event"] for line in logs] == ["traces.not_sent", "traces.sent_again"]


def test_an_exporter_that_breaks_ends_nothing(
    spans: Spans, exporter: Exporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(exporter, "export", lambda _: 1 / 0)
        with capture_logs() as logs:
            add(spans, 1)
            wait_until(lambda: logs, 10, "it is logged")
    assert "ZeroDivisionError" in logs[0]["error"]

    add(spans, 1)

    wait_until(lambda: exporter.taken, 10, "the next is sent")


def test_the_end_of_a_process_sends_what_waits(spans: Spans, exporter: Exporter) -> None:
    add(spans, 5)

    spans.close()

    assert len(exporter.taken) == 5


def test_the_end_of_a_process_does_not_wait_for_a_collector_that_hangs(spans: Spans, exporter: Exporter) -> None:
    exporter.free.clear()
    add(spans, 1)
    assert exporter.is_asked.wait(10)
    began = time.monotonic()

    spans.close()

    # The bound is for a busy machine: a request to a collector may take ten seconds, and many may wait.
    assert GRACE_SECONDS <= time.monotonic() - began < GRACE_SECONDS + 5

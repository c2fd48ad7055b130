"""Which traces are sent: by the settings of the SDK, the same ones in every process."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from app.lib.request_ids import kept_or_new
from app.logs.spans import Spans
from tests.journeys.shops import open_shop
from tests.journeys.waiting import wait_until
from tests.stack.receiver import Receiver
from tests.stack.stack import Stack
from tests.tracing.collector import Collector


@pytest.fixture
def quarter(monkeypatch: pytest.MonkeyPatch, collector: Collector) -> Iterator[Callable[[], Spans]]:
    """Makes what a process has that sends a quarter of the traces."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "parentbased_traceidratio")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", "0.25")
    made: list[Spans] = []

    def make() -> Spans:
        made.append(Spans("bellhop-test"))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.mark.parametrize("new", [lambda: kept_or_new(None), lambda: secrets.token_hex(16)], ids=["ours", "callers"])
def test_a_share_of_the_traces_is_sent_the_same_by_every_process(
    quarter: Callable[[], Spans], new: Callable[[], str]
) -> None:
    web, writes, traces = quarter(), quarter(), [new() for _ in range(4_000)]

    sampled = [trace for trace in traces if web.is_sampled(trace)]

    assert sampled == [trace for trace in traces if writes.is_sampled(trace)]
    assert 800 < len(sampled) < 1_200


def test_a_share_of_nothing_sends_nothing(collector: Collector) -> None:
    settings = {
        **{"RATE_LIMIT": "0", "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url},
        **{"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0", "OTEL_SERVICE_NAME": "unsampled"},
    }
    processes = {"web": 1, "writes": 1, "deliveries": 1, "scheduler": 1}
    with (
        TemporaryDirectory(prefix="bellhop-tracing-", ignore_cleanup_errors=True) as directory,
        Stack(Path(directory), processes, settings) as stack,
    ):
        receiver = Receiver(stack.certificates.ca_file.parent)
        receiver.start()
        shop, trace_id = open_shop(stack, receiver), secrets.token_hex(16)
        header = {"traceparent": f"00-{trace_id}-{secrets.token_hex(8)}-01"}
        shop.caller().apply("POST", "contacts", {"email": "ada@example.com"}, header)
        wait_until(lambda: receiver.counts[shop.hook], 60, "the event is delivered")
        told = receiver.received[0].headers["traceparent"]
        receiver.stop()

    # All processes have ended, so they have sent what they had.
    assert [span for span in list(collector.spans) if span.service == "unsampled"] == []
    assert told.startswith(f"00-{trace_id}-")
    assert told.endswith("-00")

"""Tracing: which identifiers name a trace and its spans, and what happens without the packages."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import pytest
from structlog.testing import capture_logs

from app import config
from app.lib.request_ids import kept_or_new
from app.logs import tracing
from app.logs.tracing import Parent

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Sets where traces are sent, where the packages for that are not installed. Nothing can turn tracing on then."""

    def set_endpoint(text: str) -> None:
        environment = {"DATABASE_URL": "postgresql://x/x", "REDIS_URL": "redis://x", "SECRET_KEY": "k" * 32}
        settings = config.read({**environment, "OTEL_EXPORTER_OTLP_ENDPOINT": text})
        monkeypatch.setattr(tracing, "settings", lambda: settings)

    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    monkeypatch.delitem(sys.modules, "app.logs.spans", raising=False)
    yield set_endpoint
    assert tracing.spans is None


def test_a_traceparent_names_a_trace_and_a_span() -> None:
    assert tracing.parent_of(f"00-{TRACE}-{SPAN}-01") == Parent(TRACE, int(SPAN, 16))
    assert tracing.parent_of(f"00-{TRACE}-{SPAN}-00") == Parent(TRACE, int(SPAN, 16))


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "nonsense",
        f"00-{TRACE}-{SPAN}",
        f"00-{TRACE}-{SPAN}-01-more",
        f"00-{TRACE}-{SPAN}-0g",
        f"01-{TRACE}-{SPAN}-01",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE[1:]}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01\n",
        f" 00-{TRACE}-{SPAN}-01",
        f"00-{TRACE.replace('4', '٤', 1)}-{SPAN}-01",
        "0" * 100_000,
    ],
)
def test_a_malformed_traceparent_is_ignored(header: str | None) -> None:
    assert tracing.parent_of(header) is None


def test_an_identifier_that_can_name_a_trace_does() -> None:
    new = kept_or_new(None)

    assert tracing.trace_of(new) == new
    assert tracing.trace_of(TRACE) == TRACE


@pytest.mark.parametrize("identifier", ["mine", "", "0" * 32, TRACE.upper(), TRACE + "0", "hook_01kaj5bd40"])
def test_any_other_is_replaced_by_a_digest(identifier: str) -> None:
    trace_id = tracing.trace_of(identifier)

    assert trace_id == tracing.trace_of(identifier) != identifier
    assert tracing.parent_of(f"00-{trace_id}-{SPAN}-01") is not None


def test_spans_of_different_things_differ() -> None:
    spans = [
        tracing.span_of("dlv_1", "1"),
        tracing.span_of("dlv_1", "2"),
        tracing.span_of("dlv_1"),
        tracing.span_of("job_1"),
        tracing.accepting("job_1"),
    ]

    assert len(set(spans)) == len(spans)
    assert all(0 < span < 2**64 for span in spans)


def test_a_header_for_a_receiver_can_be_read() -> None:
    assert tracing.parent_of(tracing.traceparent(TRACE, 7)) == Parent(TRACE, 7)


@pytest.mark.parametrize("text", ["", " "])
def test_it_is_off_without_the_setting(endpoint: Callable[[str], None], text: str) -> None:
    endpoint(text)

    with capture_logs() as logs:
        tracing.start("web")

    assert logs == []
    assert "app.logs.spans" not in sys.modules


@pytest.mark.parametrize("text", ["http://127.0.0.1:4318", "no address"])
def test_without_the_packages_a_process_works_and_says_what_to_install(
    endpoint: Callable[[str], None], text: str
) -> None:
    endpoint(text)

    with capture_logs() as logs:
        tracing.start("web")

    [line] = logs
    assert (line["log_level"], line["event"]) == ("warning", "traces.not_installed")
    assert "requirements-tracing.txt" in line["remedy"]

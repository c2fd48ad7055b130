"""One request's way through all processes, as a collector sees it."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import time
import uuid

import pytest

from app.logs import tracing
from tests.journeys.conversing import Providers, begin_talks
from tests.journeys.faults import FailsFirst
from tests.journeys.runs import publish
from tests.journeys.shops import Shop
from tests.journeys.waiting import wait_until
from tests.stack.receiver import Receiver
from tests.stack.stack import Stack
from tests.tracing.collector import Collector, Span, paths, tree

CALL, COMPLETED = "/call", "automation.completed"
CONTACTS = "/api/v1/workspaces/<workspace>/contacts"


def new_parent() -> tuple[str, str, dict[str, str]]:
    """A trace, a span of it, and the header of a request that this span sends."""
    trace_id, span_id = secrets.token_hex(16), secrets.token_hex(8)
    return trace_id, span_id, {"traceparent": f"00-{trace_id}-{span_id}-01"}


def received(collector: Collector, trace_id: str, expected: list[str]) -> dict[str, Span]:
    """The spans of the trace by the last name of their paths, once those have been received, and no others."""
    try:
        wait_until(lambda: len(collector.trace(trace_id)) >= len(expected), 60, "all spans are received")
    finally:
        spans = collector.trace(trace_id)
        print(f"\n{tree(spans)}")
    assert paths(spans) == sorted(expected)
    return {span.name: span for span in spans}


def test_a_request_is_one_trace_through_all_processes(collector: Collector, receiver: Receiver, shop: Shop) -> None:
    steps = [
        {"id": "vip", "kind": "add_tag", "tag": "vip"},
        {"id": "call", "kind": "http_request", "method": "POST", "address": receiver.url(CALL), "body": {"a": "b"}},
    ]
    publish(shop, steps, triggers=[{"event": "contact.created"}])
    trace_id, span_id, header = new_parent()

    answer = shop.caller().call("POST", "contacts", {"email": "ada@example.com"}, header)

    job = f"web POST {CONTACTS} > writes contacts.upsert"
    run = f"{job} > writes contact.created > automations run"
    events = [f"{run} > automations {name}" for name in ("automation.started", "tag.added", COMPLETED)]
    spans = received(
        collector,
        trace_id,
        [
            *(f"web POST {CONTACTS}", job, f"{job} > writes contact.created"),
            *(run, f"{run} > automations POST of a run", f"{run} > automations run", *events),
            *(f"{event} > deliveries POST webhook" for event in (f"{job} > writes contact.created", *events)),
        ],
    )
    assert answer.headers["X-Request-Id"] == trace_id
    request, job_span = spans[f"POST {CONTACTS}"], spans["contacts.upsert"]
    assert request.parent_id == span_id
    assert [span.kind for span in (request, job_span, spans["contact.created"], spans["POST webhook"])] == [
        *("SERVER", "CONSUMER", "PRODUCER", "CLIENT"),
    ]
    assert request.attributes["http.response.status_code"] == 202
    assert request.attributes["bellhop.job.id"] == job_span.attributes["messaging.message.id"] == answer.data["id"]
    assert not [span for span in collector.trace(trace_id) if span.is_error or span.end < span.start]


def test_a_receiver_is_told_the_span_of_the_attempt(collector: Collector, receiver: Receiver, shop: Shop) -> None:
    trace_id, _, header = new_parent()

    shop.caller().call("POST", "contacts", {"email": "ada@example.com"}, header)

    wait_until(lambda: [span for span in collector.trace(trace_id) if span.kind == "CLIENT"], 60, "the attempt's span")
    [attempt] = [span for span in collector.trace(trace_id) if span.kind == "CLIENT"]
    told = [each.headers.get("traceparent") for each in receiver.received if each.path == shop.hook]
    assert f"00-{trace_id}-{attempt.span_id}-01" in told


def test_each_attempt_is_a_span_and_a_failed_one_is_an_error(
    collector: Collector, receiver: Receiver, shop: Shop
) -> None:
    receiver.behaviour = FailsFirst(1)
    trace_id, _, header = new_parent()

    shop.caller().call("POST", "contacts", {"email": "ada@example.com"}, header)

    def attempts() -> list[Span]:
        return [span for span in collector.trace(trace_id) if span.name == "POST webhook"]

    wait_until(lambda: len(attempts()) >= 2, 60, "two attempts are received")
    first, second = attempts()
    assert first.parent_id == second.parent_id
    assert first.span_id != second.span_id
    assert (first.is_error, first.attributes["error.type"], first.attributes["http.response.status_code"]) == (
        *(True, "status", 500),
    )
    assert (second.is_error, second.attributes["http.request.resend_count"]) == (False, 1)


def test_a_request_with_an_identifier_of_its_own_is_linked_to_the_callers_span(
    collector: Collector, shop: Shop
) -> None:
    trace_id, span_id, header = new_parent()

    answer = shop.caller().call("GET", "contacts", headers={**header, "X-Request-Id": "ours-1"})

    def named() -> list[Span]:
        return [span for span in list(collector.spans) if span.attributes.get("bellhop.request.id") == "ours-1"]

    wait_until(named, 60, "the span is received")
    [span] = named()
    assert answer.headers["X-Request-Id"] == "ours-1"
    assert (span.parent_id, span.links) == ("", [(trace_id, span_id)])
    assert collector.trace(trace_id) == []


def test_a_message_has_the_trace_of_the_request_that_sent_it(
    stack: Stack, collector: Collector, shop: Shop, ports: tuple[int, int]
) -> None:
    providers = Providers.beside(stack.certificates.ca_file.parent, ports)
    try:
        talks = begin_talks(stack, shop, providers, each=1)
        talker = next(each for each in talks.talkers if each.kind == "telegram")
        trace_id, _, header = new_parent()

        path = f"conversations/{talker.conversation_id}/messages"
        shop.caller().apply("POST", path, {"text": "Hello"}, header)

        request = "web POST /api/v1/workspaces/<workspace>/conversations/<conversation_id>/messages"
        job = f"{request} > writes messages.create"
        received(collector, trace_id, [request, job, f"{job} > messages send message"])
    finally:
        providers.stop()


@pytest.mark.parametrize("how", ["stop", "hang"])
def test_a_collector_that_is_away_or_hangs_holds_up_nothing(
    stack: Stack, collector: Collector, receiver: Receiver, shop: Shop, how: str
) -> None:
    caller, emails = shop.caller(), [f"{uuid.uuid4()}@example.com" for _ in range(200)]
    caller.apply("POST", "contacts", {"email": "before@example.com"})
    processes = ("web", "writes", "deliveries")
    before = {name: len(log_lines(stack, name, "traces.not_sent")) for name in processes}
    getattr(collector, how)()
    try:
        began = time.monotonic()
        for email in emails:
            assert caller.call("POST", "contacts", {"email": email}).status == 202
        wait_until(lambda: receiver.counts[shop.hook] >= len(emails) + 1, 60, "all are delivered")
        print(f"\n{len(emails)} writes and their deliveries: {time.monotonic() - began:.1f} s")
        for name in processes:
            wait_until(
                lambda name=name: len(log_lines(stack, name, "traces.not_sent")) > before[name], 90, f"{name} says so"
            )
    finally:
        collector.start()
    for name in processes:
        wait_until(
            lambda name=name: (
                caller.apply("POST", "contacts", {"email": f"{uuid.uuid4()}@example.com"})
                and len(log_lines(stack, name, "traces.sent_again")) > before[name]
            ),
            90,
            f"{name} says that it works again",
        )
        assert len(log_lines(stack, name, "traces.not_sent")) == before[name] + 1


PACKAGES = {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        (PACKAGES, "ok     traces: to 127.0.0.1, port {port}"),
        (
            {"PYTHONPATH": ""},
            "WRONG  traces: OTEL_EXPORTER_OTLP_ENDPOINT is set, but packages are missing: {remedy}",
        ),
        (
            PACKAGES | {"OTEL_EXPORTER_OTLP_ENDPOINT": "collector:4318"},
            "WRONG  traces: nothing can be sent to OTEL_EXPORTER_OTLP_ENDPOINT: it must be an address such as"
            " http://127.0.0.1:4318",
        ),
    ],
    ids=["installed", "missing", "no address"],
)
def test_check_says_whether_traces_can_be_sent(
    stack: Stack, collector: Collector, changed: dict[str, str], line: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "app", "check"],
        env=stack.environment | changed,
        capture_output=True,
        text=True,
        check=False,
    )

    assert line.format(port=collector.port, remedy=tracing.REMEDY) in done.stdout.splitlines()


def test_a_process_that_ends_sends_what_it_has(stack: Stack, collector: Collector, shop: Shop) -> None:
    trace_id, _, header = new_parent()
    shop.caller().call("GET", "contacts", headers=header)

    stack.processes.stop("web")

    assert [span.kind for span in collector.trace(trace_id)] == ["SERVER"]
    stack.processes.start("web")
    stack.processes.wait_ready()


def log_lines(stack: Stack, name: str, event: str) -> list[str]:
    return [line for line in stack.processes.log(name).read_text().splitlines() if event in line]

"""An endpoint gets what it asks for, so many in a second or one after another, whoever sends and whoever dies."""

from __future__ import annotations

import json
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator
from itertools import groupby, pairwise

import pytest

from tests.journeys.attempts import logs
from tests.journeys.audit import rows
from tests.journeys.conftest import same_receiver, serve
from tests.journeys.faults import names
from tests.journeys.shops import Shop, open_shop
from tests.journeys.waiting import wait_until
from tests.stack.receiver import Answer, Receiver
from tests.stack.stack import Stack

PROCESSES = {"web": 1, "writes": 1, "deliveries": 4, "slow-deliveries": 1, "retries": 1, "scheduler": 1}
SETTINGS = {"RETRY_SCHEDULE": "2,2,2,2,2,2", "WEBHOOK_TIMEOUT_SECONDS": "2", "PROBE_PAUSE_SECONDS": "0"}
NDJSON = {"Content-Type": "application/x-ndjson"}
LIMIT = 20
EVENTS = 1200  # enough that the moment which each killed process costs weighs little
SECONDS = 10.0  # over which the rate is measured
ORDERED_EVENTS = 1000
FAILURES = 3  # of a delivery in the middle

Report = Callable[[object], None]


@pytest.fixture(scope="module")
def sending(running: Stack) -> Iterator[Stack]:
    """The service with four processes that send."""
    yield from serve(PROCESSES, SETTINGS | same_receiver(running))


@pytest.mark.several_processes
def test_an_endpoint_gets_as_many_in_a_second_as_it_asks_for_while_processes_are_killed(
    sending: Stack, receiver: Receiver, report: Report
) -> None:
    shop = open_shop(sending, receiver)
    shop.caller().apply("PATCH", f"webhooks/endpoints/{shop.endpoint_id}", {"max_per_second": LIMIT})
    failed: set[str] = set()
    receiver.behaviour = lambda _path, body: _fails_some_once(failed, body)

    _import(shop, EVENTS)
    for number, name in enumerate(names(sending, "deliveries"), 1):
        wait_until(lambda number=number: len(receiver.received) >= EVENTS * number / 6, 30, "deliveries arrive")
        sending.processes.kill(name)
    wait_until(lambda: _is_finished(sending, shop, EVENTS), 60, "every delivery has arrived")

    # When they left: the receiver, a thread of this process, sees them late while the machine is busy.
    began = sorted(at for log in logs(sending, [shop]) for at in log.began)
    # From the first to the last first attempt: then the limit is made full use of.
    steady = began[: EVENTS - EVENTS // 8]
    counts = [bisect_left(began, at + SECONDS) - number for number, at in enumerate(began)]
    mean = (len(steady) - 1) / (steady[-1] - steady[0])
    longest = max(later - earlier for earlier, later in pairwise(steady))
    report(f"at most {max(counts) / SECONDS:.1f} in a second, {mean:.1f} on average, longest gap {longest:.2f} s")
    assert max(counts) <= LIMIT * SECONDS * 1.05
    assert mean >= LIMIT * 0.95
    assert len({each.delivery_id for each in receiver.received}) == EVENTS
    # Only an attempt whose process was killed in the middle of it may have no entry.
    assert len(began) <= len(receiver.received) <= len(began) + LIMIT


def test_an_ordered_endpoint_gets_its_events_in_order_while_processes_are_killed(
    sending: Stack, receiver: Receiver, report: Report
) -> None:
    shop = open_shop(sending, receiver)
    shop.caller().apply("PATCH", f"webhooks/endpoints/{shop.endpoint_id}", {"ordered": True})
    receiver.behaviour = lambda _path, _body: (
        500 if ORDERED_EVENTS // 2 <= len(receiver.received) < ORDERED_EVENTS // 2 + FAILURES else 200
    )

    began = time.monotonic()
    _import(shop, ORDERED_EVENTS)
    for number, name in enumerate(names(sending, "deliveries"), 1):
        wait_until(lambda number=number: len(receiver.received) >= ORDERED_EVENTS * number / 6, 60, "deliveries arrive")
        sending.processes.kill(name)
    wait_until(lambda: _is_finished(sending, shop, ORDERED_EVENTS), 120, "every delivery has arrived")

    took = time.monotonic() - began
    arrived = [json.loads(each.body)["id"] for each in sorted(receiver.received, key=lambda each: each.at)]
    in_order = [event for event, _ in groupby(arrived)]
    report(f"{len(in_order)} events in order in {took:.0f} s, {len(arrived) - len(in_order)} of them repeated")
    assert in_order == sorted(set(arrived))
    assert len(in_order) == ORDERED_EVENTS


def _import(shop: Shop, number: int) -> None:
    lines = b"\n".join(json.dumps({"external_id": f"contact-{each}"}).encode() for each in range(number))
    assert shop.caller().call("POST", "contacts/import", lines, NDJSON).status == 202


def _fails_some_once(failed: set[str], body: bytes) -> Answer:
    """One event in eight fails the first time, so that there are retries."""
    event = json.loads(body)["id"]
    fails = hash(event) % 8 == 0 and event not in failed
    failed.add(event)
    return Answer(500 if fails else 200)


def _is_finished(stack: Stack, shop: Shop, number: int) -> bool:
    query = "SELECT count(*) FILTER (WHERE status = 'delivered') FROM deliveries WHERE workspace_id = %s"
    return rows(stack, query, shop.workspace_id) == [(number,)]

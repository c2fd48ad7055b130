"""An endpoint that fails is probed: a short outage stops nobody, and no endpoint is flooded when it fails."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest

from tests.journeys.attempts import check_logs
from tests.journeys.audit import rows, settle
from tests.journeys.conftest import same_receiver, serve
from tests.journeys.faults import let_pass, names
from tests.journeys.load import Load
from tests.journeys.shops import Shop, open_shop
from tests.journeys.waiting import wait_until
from tests.stack.receiver import Answer, Receiver
from tests.stack.stack import Stack

CONTACTS = 100
OUTAGE_SECONDS = 3
PROCESSES = {"web": 1, "writes": 1, "deliveries": 4, "slow-deliveries": 1, "retries": 1, "scheduler": 1}
SETTINGS = {
    "RETRY_SCHEDULE": "3,3,3,3,3,3",
    "STOP_AFTER_FAILURES": "50",
    "WEBHOOK_TIMEOUT_SECONDS": "5",
    "PROBE_PAUSE_SECONDS": "1",
}
PROBE_SECONDS = 0.4
PROBES = 12
NDJSON = {"Content-Type": "application/x-ndjson"}

Report = Callable[[object], None]


@pytest.fixture(scope="module")
def probing(running: Stack) -> Iterator[Stack]:
    """The service with four processes that send, and a short pause between probes."""
    yield from serve(PROCESSES, SETTINGS | same_receiver(running))


def test_a_receiver_that_restarts_during_an_import_is_not_stopped_and_gets_everything(
    probing: Stack, receiver: Receiver, report: Report
) -> None:
    shop = open_shop(probing, receiver)
    lines = b"\n".join(json.dumps({"external_id": f"contact-{number}"}).encode() for number in range(CONTACTS))
    receiver.stop()
    shop.caller().call("POST", "contacts/import", lines, NDJSON)
    wait_until(lambda: _is_probed(probing, shop), 30, "the endpoint is probed")
    let_pass(OUTAGE_SECONDS)
    receiver.start()

    settle(probing, [shop], seconds=60)

    found = check_logs(probing, [shop])
    failed = sum(log.attempts - 1 for log in found)
    report(f"{failed} attempts at {CONTACTS} deliveries failed in {OUTAGE_SECONDS} s, all arrived afterwards")
    assert Counter(log.status for log in found) == {"delivered": CONTACTS}
    assert failed < CONTACTS
    assert {each.delivery_id for each in receiver.received} == {log.delivery_id for log in found}
    endpoint = shop.caller().get(f"webhooks/endpoints/{shop.endpoint_id}")
    assert (endpoint["state"], endpoint["consecutive_failures"]) == ("active", 0)


@pytest.mark.nightly
@pytest.mark.several_processes
def test_four_processes_never_have_two_probes_of_an_endpoint_under_way(
    probing: Stack, receiver: Receiver, report: Report
) -> None:
    shop = open_shop(probing, receiver)
    assert len(names(probing, "deliveries")) == 4
    receiver.answers[shop.hook] = Answer(500, delay_seconds=PROBE_SECONDS)
    with Load([shop], clients=4, contacts=50, pause_seconds=0.05):
        wait_until(lambda: _is_probed(probing, shop), 30, "the endpoint is probed")
        # What was under way when the probing began ends first.
        wait_until(lambda: _under_way(probing, shop) <= 1, 20, "at most one attempt is under way")
        begun = receiver.counts[shop.hook]
        wait_until(lambda: receiver.counts[shop.hook] >= begun + PROBES, 60, f"{PROBES} probes have been made")

    arrived = [each.at for each in receiver.received if each.path == shop.hook][begun:]
    gaps = [later - earlier for earlier, later in pairwise(arrived)]
    report(f"{len(arrived)} probes began {min(gaps):.2f} s after one another, or later")
    assert min(gaps) >= PROBE_SECONDS
    receiver.answers.clear()
    settle(probing, [shop], seconds=60)
    assert {log.status for log in check_logs(probing, [shop])} == {"delivered"}


def _is_probed(stack: Stack, shop: Shop) -> bool:
    return rows(stack, "SELECT probe_at IS NOT NULL FROM endpoints WHERE id = %s", shop.endpoint_id) == [(True,)]


def _under_way(stack: Stack, shop: Shop) -> int:
    query = "SELECT count(*) FROM deliveries WHERE endpoint_id = %s AND leased_until > now()"
    return int(rows(stack, query, shop.endpoint_id)[0][0])

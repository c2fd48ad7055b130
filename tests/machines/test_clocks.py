"""A host whose clock is two minutes wrong, under load: who may claim what, and when, does not depend on it."""

from __future__ import annotations

import uuid
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import cycle

import pytest

from app.lib import ids
from tests.journeys.audit import audit, rows
from tests.journeys.faults import FailsFirst
from tests.journeys.load import Load
from tests.journeys.shops import Caller, Shop
from tests.machines.hosts import Host, Hosts
from tests.stack.clocks import Clock
from tests.stack.receiver import Receiver

# The first of the retry schedule, and how late a retry may be on a busy machine.
RETRY_SECONDS, LATE_SECONDS = 1, 30


@dataclass(frozen=True)
class Wrong:
    """The host whose clock is that many seconds ahead of the others'."""

    host: Host
    seconds: int


@pytest.fixture(scope="module")
def clock(tmp_path_factory: pytest.TempPathFactory) -> Clock:
    return Clock(tmp_path_factory.mktemp("clock") / "host")


@pytest.fixture(scope="module", params=[120, -120], ids=["ahead", "behind"])
def wrong(request: pytest.FixtureRequest, running: Hosts, clock: Clock) -> Iterator[Wrong]:
    host = running.all[-1]
    host.processes.stop()
    host.processes.environment.update(clock.environment)
    clock.move(request.param)
    try:
        host.start()
        yield Wrong(host, request.param)
    finally:
        clock.move(-request.param)


def test_a_leading_host_with_a_wrong_clock_loses_and_doubles_nothing(
    wrong: Wrong, hosts: Hosts, receiver: Receiver
) -> None:
    host, seconds, shops = wrong.host, wrong.seconds, hosts.open_shops(receiver)
    receiver.behaviour = FailsFirst(1, delay_seconds=0.1)
    hosts.let_lead(host)
    with Load(shops, pause_seconds=0.1) as load:
        load.go_on(600)
        leader = hosts.leader()

    figures = audit(hosts.stack, receiver, load)

    pauses, signed = retried_after(receiver), signed_at(receiver)
    skews = {shop.base_url: skew_of_identifiers(hosts, shop) for shop in shops}
    print(f"\n{host.name}, which leads, is {seconds:+d} s wrong. {figures}")
    print(f"retries after {min(pauses):.1f} to {max(pauses):.1f} s; signatures by minutes wrong: {dict(signed)}")
    print(f"identifiers of jobs, seconds wrong: {skews}")
    assert leader is host
    # Each was tried as often as the receiver wanted, by whichever host: no lease was taken for over.
    assert set(Counter(each.delivery_id for each in receiver.received).values()) == {2}
    assert min(pauses) > RETRY_SECONDS * 0.9
    assert max(pauses) < LATE_SECONDS
    assert signed.keys() == {0, seconds // 60}
    assert [round(skews[each.base_url] / 60) for each in hosts.all] == [0, 0, seconds // 60]


def test_a_caller_may_use_hosts_whose_clocks_differ(wrong: Wrong, hosts: Hosts, receiver: Receiver) -> None:
    """A token is used, a key is repeated, and a list is read page by page, at one host and at the other."""
    shop = hosts.open_shops(receiver)[0]
    key = {"Idempotency-Key": str(uuid.uuid4())}
    callers = [shop.caller(), replace(shop, base_url=wrong.host.base_url).caller()]

    answers = [each.call("POST", "contacts", {"external_id": "ada"}, key) for each in [*callers, *callers]]
    for number in range(30):
        callers[number % 2].apply("POST", "contacts", {"external_id": f"contact-{number}"})
    listed = list(pages(callers))

    written = rows(hosts.stack, "SELECT id FROM jobs WHERE workspace_id = %s", shop.workspace_id)
    assert [answer.status for answer in answers] == [202] * 4
    assert len({answer.data["id"] for answer in answers}) == 1
    assert sorted(listed) == sorted(id for (id,) in written)


def pages(callers: Sequence[Caller]) -> Iterator[str]:
    """The identifiers of all jobs, five on a page, each page from the other host."""
    cursor = ""
    for caller in cycle(callers):
        page = caller.call("GET", f"jobs?limit=5{cursor}")
        assert page.status == 200, page
        yield from (job["id"] for job in page.data)
        if not page.document["meta"]["hasMore"]:
            return
        cursor = f"&cursor={page.document['meta']['nextCursor']}"


def retried_after(receiver: Receiver) -> list[float]:
    """The seconds between the first and the second attempt at each delivery."""
    times: dict[str, list[float]] = defaultdict(list)
    for each in receiver.received:
        times[each.delivery_id].append(each.at)
    return [second - first for first, second, *_ in times.values()]


def signed_at(receiver: Receiver) -> Counter[int]:
    """The number of signatures by how many minutes after their arrival they say that they were made."""
    stamps = [(int(each.signature.partition(",")[0].removeprefix("t=")), each.at) for each in receiver.received]
    return Counter(round((signed - arrived) / 60) for signed, arrived in stamps)


def skew_of_identifiers(hosts: Hosts, shop: Shop) -> float:
    """By how many seconds the identifier of the shop's newest job is ahead of the database's clock."""
    [(job_id, created_at)] = rows(
        hosts.stack,
        "SELECT id, created_at FROM jobs WHERE workspace_id = %s ORDER BY position DESC LIMIT 1",
        shop.workspace_id,
    )
    ahead: timedelta = ids.time_of(job_id) - created_at
    return round(ahead.total_seconds(), 1)

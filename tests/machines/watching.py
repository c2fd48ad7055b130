"""What clients see while machines are cut off from each other, and what explains a webhook that arrives twice."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

import redis

from tests.journeys.audit import rows
from tests.journeys.load import Load
from tests.journeys.shops import NoAnswer, Shop
from tests.journeys.waiting import wait_until
from tests.machines.hosts import Host, Hosts
from tests.stack.receiver import Receiver


class Client:
    """Reads contacts and asks /readyz at one host, over and over, as long as `reading` lasts."""

    def __init__(self, host: Host, shop: Shop) -> None:
        self.answers: Counter[str] = Counter()
        self.longest_seconds = 0.0
        self._host, self._caller = host, shop.caller()

    def __str__(self) -> str:
        counted = ", ".join(f"{answer} {number}x" for answer, number in sorted(self.answers.items()))
        return f"{counted}; the longest in {self.longest_seconds:.1f} s"

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Reads in the block, and until what it has asked for last is answered."""
        stopping = Event()
        thread = Thread(target=self._read, args=(stopping,))
        thread.start()
        try:
            yield
        finally:
            stopping.set()
            thread.join()

    def _read(self, stopping: Event) -> None:
        while not stopping.wait(0.1):
            for what, ask in (("ready", lambda: self._host.answers("/readyz")), ("contacts", self._contacts)):
                began = time.monotonic()
                self.answers[f"{what}: {ask()}"] += 1
                self.longest_seconds = max(self.longest_seconds, time.monotonic() - began)

    def _contacts(self) -> int | None:
        try:
            return self._caller.call("GET", "contacts").status
        except NoAnswer:
            return None


def taken_over(hosts: Hosts, load: Load, seconds: float) -> float:
    """Waits until all that was accepted by now has been applied and received; returns the seconds it took."""
    workspaces = [shop.workspace_id for shop in load.shops]
    [(now,)] = rows(hosts.stack, "SELECT clock_timestamp()")

    def is_done() -> bool:
        [(left,)] = rows(
            hosts.stack,
            """
            SELECT (SELECT count(*) FROM jobs WHERE workspace_id = ANY(%s) AND created_at < %s AND due_at IS NOT NULL)
                + (SELECT count(*) FROM deliveries
                    WHERE workspace_id = ANY(%s) AND created_at < %s AND status = 'pending')
            """,
            *[workspaces, now] * 2,
        )
        return bool(left == 0)

    return wait_until(is_done, seconds, "what was accepted before is done")


def at_work_again(hosts: Hosts, host: Host, seconds: float) -> float:
    """Waits until `web` of the host is ready, its processes are heard from, and its workers have done something.

    Returns the seconds it took.
    """
    kinds = {"writes": "job.finished", "deliveries": "delivery.attempt"}
    before = {kind: len(host.logged(kind, event)) for kind, event in kinds.items()}

    def is_at_work() -> bool:
        return (
            host.answers("/readyz") == 200
            and heard_from(hosts, host) == len(host.processes.names)
            and all(len(host.logged(kind, event)) > before[kind] for kind, event in kinds.items())
        )

    return wait_until(is_at_work, seconds, f"{host.name} works again")


def heard_from(hosts: Hosts, host: Host) -> int:
    """How many processes of the host have renewed their presence lately."""
    client = redis.Redis.from_url(hosts.stack.redis.url)
    return len(list(client.scan_iter(f"process:*:{host.name}:*")))


def sessions(hosts: Hosts, host: Host) -> int:
    """How many sessions of the host PostgreSQL has."""
    query = "SELECT count(*) FROM pg_stat_activity WHERE client_addr = %s"
    return int(rows(hosts.stack, query, host.machine.address)[0][0])


def longest_write(load: Load, since: float, elsewhere: Host) -> float:
    """The seconds from sending to acceptance of the slowest write, retries included, at the other hosts since then."""
    theirs = {shop.workspace_id for shop in load.shops if shop.base_url != elsewhere.base_url}
    return max(
        each.answered_at - each.sent_at
        for each in load.accepted
        if each.workspace_id in theirs and each.answered_at > since
    )


def repeated(receiver: Receiver) -> Counter[str]:
    """How often each delivery arrived beyond the first time."""
    arrived = Counter(each.delivery_id for each in receiver.received)
    return Counter({delivery: number - 1 for delivery, number in arrived.items() if number > 1})


def unrecorded(hosts: Hosts) -> Counter[str]:
    """How many attempts at each delivery were made whose result came too late to be recorded, by the hosts' logs."""
    lines = [
        line
        for host in hosts.all
        for kind in ("deliveries", "slow-deliveries")
        for line in host.logged(kind, "delivery.attempt", status="stale")
    ]
    return Counter(line["delivery"] for line in lines)

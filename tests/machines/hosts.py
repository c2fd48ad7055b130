"""The service on three machines, with PostgreSQL and Redis on a fourth."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import requests

from tests.journeys.audit import rows
from tests.journeys.logs import read_lines
from tests.journeys.shops import Shop, open_shops
from tests.journeys.waiting import wait_until
from tests.machines.namespaces import NETWORK, OUTSIDE, Machine
from tests.stack.certificates import Certificates
from tests.stack.processes import Processes
from tests.stack.receiver import Receiver
from tests.stack.stack import Stack

EVERYWHERE = {"web": 1, "writes": 1, "deliveries": 1, "scheduler": 1}
# Beside those, each on two, as one may be cut off. With fewer than one of each type on each machine, two cores suffice.
FURTHER = (
    {"realtime": 1, "retries": 1},
    {"realtime": 1, "slow-deliveries": 1},
    {"retries": 1, "slow-deliveries": 1},
)
SETTINGS = {
    "RATE_LIMIT": "0",
    "RETRY_SCHEDULE": "1,1,2,2,3,3,5,5,5,5,5,5",
    # Receivers fail on purpose here.
    "STOP_AFTER_FAILURES": "1000000",
    "PROBE_PAUSE_SECONDS": "0",
    "WEBHOOK_TIMEOUT_SECONDS": "5",
    "WEBHOOK_ALLOWED_NETWORKS": NETWORK,
    "PORT": "8000",
    "REALTIME_PORT": "8001",
    # What a proxy would have; the tests call each host by its own address.
    "BASE_URL": "http://10.26.1.2:8000",
}
# Every request is answered within this time, whatever is cut.
ANSWERED_SECONDS = 15


class Host:
    """A machine and its processes."""

    def __init__(self, machine: Machine, counts: Mapping[str, int], stack: Stack) -> None:
        self.machine, self.name = machine, machine.name
        self.base_url = f"http://{machine.address}:{SETTINGS['PORT']}"
        # /readyz, which says when they have started, is asked at BASE_URL.
        own = {"LISTEN_HOST": machine.address}
        self.processes = Processes(counts, stack.environment | own, stack.directory / "logs" / machine.name)

    def start(self, name: str | None = None) -> None:
        """Starts one of its processes, or all, and waits until they are ready. Raises DidNotStart."""
        with self.machine.inside():
            self.processes.start(name)
        self.processes.wait_ready()
        wait_until(lambda: self.answers("/readyz") == 200, 60, f"web of {self.name} is ready")

    def answers(self, path: str) -> int | None:
        """The status that `web` answers a client outside with; None if it cannot be reached."""
        try:
            return requests.get(f"{self.base_url}{path}", timeout=ANSWERED_SECONDS).status_code
        except requests.ConnectionError:
            return None

    def pids(self) -> dict[str, int | None]:
        """The pids of its processes by name."""
        return {name: self.processes.pid(name) for name in self.processes.names}

    def logged(self, kind: str, event: str, **facts: object) -> list[dict[str, Any]]:
        """The events of that name with these facts that the processes of a type have logged here, oldest first."""
        found = [line for name in self.processes.names_of(kind) for line in read_lines(self.processes.log(name))]
        return [line for line in found if line["event"] == event and facts.items() <= line.items()]


class Hosts:
    """Three hosts, `host-1` to `host-3`, and the machine `data`, whose servers are those of `stack`."""

    def __init__(self, directory: Path) -> None:
        Certificates(directory / "certificates", OUTSIDE)
        self.data = Machine("data", 4)
        self.stack = Stack(directory, settings=SETTINGS, host=self.data.address)
        self.all = [
            Host(Machine(f"host-{number}", number), EVERYWHERE | further, self.stack)
            for number, further in enumerate(FURTHER, 1)
        ]

    def start(self) -> None:
        """Raises DidNotStart."""
        with self.data.inside():
            self.stack.start_servers()
        self.all[0].processes.upgrade()
        with ThreadPoolExecutor() as pool:
            list(pool.map(Host.start, self.all))

    def stop(self) -> None:
        """Safe to repeat."""
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda host: host.processes.stop(), self.all))
        self.stack.stop()

    def open_shops(self, receiver: Receiver) -> list[Shop]:
        """A shop for each host, whose clients call `web` there."""
        shops = open_shops(self.stack, receiver, len(self.all))
        return [replace(shop, base_url=host.base_url) for shop, host in zip(shops, self.all, strict=True)]

    def leader(self) -> Host | None:
        """The host whose scheduler holds the lease; None while none does."""
        held = rows(self.stack, "SELECT holder FROM leases WHERE name = 'scheduler' AND expires_at > now()")
        names = [holder.partition(":")[0] for (holder,) in held]
        return next((host for host in self.all if host.name in names), None)

    def epoch(self) -> int:
        """How often the leader has changed."""
        return int(rows(self.stack, "SELECT epoch FROM leases WHERE name = 'scheduler'")[0][0])

    def let_lead(self, host: Host) -> None:
        """Returns when the scheduler of this host leads."""
        others = self.others(host)
        for other in others:
            other.processes.stop("scheduler.1")
        wait_until(lambda: self.leader() is host, 30, f"{host.name} leads")
        for other in others:
            other.start("scheduler.1")

    def others(self, host: Host) -> list[Host]:
        """All hosts but this one."""
        return [each for each in self.all if each is not host]

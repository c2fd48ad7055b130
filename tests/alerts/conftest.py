"""A small service under load, whose metrics are read as Prometheus would."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg2
import pytest
from prometheus_client.parser import text_string_to_metric_families

from app.metrics import MOST_PORTS
from tests.alerts.series import NAMES, Seen, firing
from tests.journeys.faults import let_pass
from tests.journeys.load import Load
from tests.journeys.shops import Shop, open_shops
from tests.journeys.waiting import wait_until
from tests.stack.ports import free_range
from tests.stack.receiver import Receiver
from tests.stack.stack import Stack

PROCESSES = {"web": 1, "writes": 1, "deliveries": 1, "slow-deliveries": 1, "scheduler": 1}
SETTINGS = {
    **{"RATE_LIMIT": "0", "STOP_AFTER_FAILURES": "1000000", "PROBE_PAUSE_SECONDS": "0"},
    "RETRY_SCHEDULE": "1,1,1,1,1,1",
}
SHOPS = 3
# Long enough for the pass that a fault breaks to fail twice.
SEEN_SECONDS = 12


@dataclass
class Service:
    """The stack, its customers, and what its metrics showed in ordinary operation."""

    stack: Stack
    receiver: Receiver
    shops: list[Shop]
    ports: dict[str, int]
    ordinary: Seen = field(init=False)

    def look(self) -> Seen:
        """What the metrics of the running processes show, twice."""
        began, first = time.monotonic(), self._scrape()
        let_pass(SEEN_SECONDS)
        seconds = time.monotonic() - began
        return Seen(first, self._scrape(), seconds)

    def is_served(self) -> bool:
        """Whether all metrics can be read; a process that has just begun logs its port a moment later."""
        with suppress(OSError):
            return bool(self._scrape())
        return False

    def fires(self, minutes: int = 30) -> set[str]:
        """The alerts that fire if it goes on for so long as it does now; before, none fires."""
        before, alerts = firing(self.ordinary, self.look(), minutes)
        assert before == set()
        return alerts

    @contextmanager
    def sql(self) -> Iterator[Any]:
        """A cursor in a transaction, which is committed at the end."""
        connection = psycopg2.connect(self.stack.postgres.url)
        try:
            with connection, connection.cursor() as cursor:
                yield cursor
        finally:
            connection.close()

    def _scrape(self) -> dict[str, float]:
        figures: dict[str, float] = {}
        for name, port in self.ports.items():
            if self.stack.processes.pid(name) is None:
                continue
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
                families = text_string_to_metric_families(answer.read().decode())
            for sample in (sample for family in families for sample in family.samples if sample.name in NAMES):
                labels = ",".join(f'{label}="{value}"' for label, value in sample.labels.items() | {("instance", name)})
                figures[f"{sample.name}{{{labels}}}"] = sample.value
        return figures


@pytest.fixture(scope="session")
def running() -> Iterator[Service]:
    ports: dict[str, int] = {}

    def on_line(name: str, line: str) -> None:
        if "metrics.served" in line:
            ports[name] = json.loads(line)["port"]

    with TemporaryDirectory(prefix="bellhop-alerts-", ignore_cleanup_errors=True) as directory:
        settings = SETTINGS | {"METRICS_PORT": str(free_range(MOST_PORTS))}
        with Stack(Path(directory), PROCESSES, settings, on_line=on_line) as stack:
            receiver = Receiver(stack.certificates.ca_file.parent)
            receiver.start()
            service = Service(stack, receiver, open_shops(stack, receiver, SHOPS), ports)
            wait_until(lambda: ports.keys() == set(stack.processes.names), 30, "all metrics are served")
            with Load(service.shops, clients=2, pause_seconds=0.2) as load:
                load.go_on()
                service.ordinary = service.look()
                yield service
            receiver.stop()


@pytest.fixture
def service(running: Service) -> Service:
    """The service, well again."""
    running.stack.processes.wait_ready()
    wait_until(running.is_served, 60, "all metrics are served")
    return running

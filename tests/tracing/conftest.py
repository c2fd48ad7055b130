"""A service that sends its traces to a collector, and a receiver of its webhooks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.journeys.shops import Shop, open_shop
from tests.stack.ports import free_port
from tests.stack.receiver import Receiver
from tests.stack.stack import Stack
from tests.tracing.collector import Collector

PROCESSES = {
    **{"web": 1, "writes": 1, "automations": 1, "deliveries": 1, "slow-deliveries": 1, "retries": 1},
    **{"messages": 1, "scheduler": 1},
}
SETTINGS = {
    **{"RATE_LIMIT": "0", "STOP_AFTER_FAILURES": "1000000", "PROBE_PAUSE_SECONDS": "0"},
    "RETRY_SCHEDULE": "1,1,1,1,1,1",
}


@pytest.fixture(scope="session")
def collector() -> Iterator[Collector]:
    collector = Collector()
    collector.start()
    yield collector
    collector.stop()


@pytest.fixture(scope="session")
def ports() -> tuple[int, int]:
    """Where the providers are to be played."""
    return free_port(), free_port()


@pytest.fixture(scope="session")
def stack(collector: Collector, ports: tuple[int, int]) -> Iterator[Stack]:
    settings = {
        **SETTINGS,
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
        "OTEL_EXPORTER_OTLP_TIMEOUT": "3",
        "TELEGRAM_API_URL": f"https://127.0.0.1:{ports[0]}",
        "WHATSAPP_API_URL": f"https://127.0.0.1:{ports[1]}/v23.0",
    }
    with (
        TemporaryDirectory(prefix="bellhop-tracing-", ignore_cleanup_errors=True) as directory,
        Stack(Path(directory), PROCESSES, settings) as stack,
    ):
        yield stack


@pytest.fixture
def receiver(stack: Stack) -> Iterator[Receiver]:
    with Receiver(stack.certificates.ca_file.parent) as receiver:
        yield receiver


@pytest.fixture
def shop(stack: Stack, receiver: Receiver) -> Shop:
    return open_shop(stack, receiver)

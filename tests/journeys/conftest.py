"""The services that the stories run on: one for most, one that stops endpoints, one with several web processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests.journeys.audit import nameless
from tests.journeys.conversing import Providers
from tests.stack.ports import free_port
from tests.stack.receiver import Receiver
from tests.stack.stack import Stack

PROCESSES = {
    **{"web": 1, "writes": 4, "automations": 1, "deliveries": 2, "slow-deliveries": 1, "retries": 1},
    **{"messages": 1, "realtime": 1, "scheduler": 2},
}
SETTINGS = {
    "RETRY_SCHEDULE": "1,1,2,2,3,3,5,5,5,5,5,5",
    # Receivers fail on purpose here.
    "STOP_AFTER_FAILURES": "1000000",
    "PROBE_PAUSE_SECONDS": "0",
    # The lease of a delivery is five seconds longer.
    "WEBHOOK_TIMEOUT_SECONDS": "5",
}

# Stops endpoints. Retries are far enough apart to act in between.
STRICT_PROCESSES = {"web": 1, "writes": 2, "deliveries": 2, "slow-deliveries": 1, "retries": 2, "scheduler": 1}
STRICT_SETTINGS = {
    "RETRY_SCHEDULE": "3,3,3,3,3,3",
    "STOP_AFTER_FAILURES": "50",
    "PROBE_PAUSE_SECONDS": "0.2",
    "WEBHOOK_TIMEOUT_SECONDS": "3",
}

# Has several web processes.
BROAD_PROCESSES = {"web": 1, "writes": 1, "deliveries": 1, "scheduler": 1}


class Ends:
    """Processes that ended unasked: (name, exit code), oldest first."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, int]] = []

    def __call__(self, name: str, code: int) -> None:
        self.seen.append((name, code))


@pytest.fixture(scope="session")
def ends() -> Ends:
    return Ends()


def serve(processes: dict[str, int], settings: dict[str, str], **options: Any) -> Iterator[Stack]:
    # Not a directory of pytest's: it removes those of older runs, even while they are in use.
    with (
        TemporaryDirectory(prefix="bellhop-journeys-", ignore_cleanup_errors=True) as directory,
        Stack(Path(directory), processes, {"RATE_LIMIT": "0", **settings}, **options) as stack,
    ):
        yield stack
        assert nameless(stack) == []


def same_receiver(running: Stack) -> dict[str, str]:
    return {"WEBHOOK_CA_FILE": str(running.certificates.ca_file)}


@pytest.fixture(scope="session")
def running(ends: Ends) -> Iterator[Stack]:
    yield from serve(PROCESSES, SETTINGS, on_end=ends)


@pytest.fixture
def stack(running: Stack) -> Stack:
    """The service, with every process ready, whatever the previous story did to them."""
    running.processes.wait_ready()
    return running


@pytest.fixture(scope="session")
def strictly_running(running: Stack) -> Iterator[Stack]:
    yield from serve(STRICT_PROCESSES, STRICT_SETTINGS | same_receiver(running))


@pytest.fixture
def strict(strictly_running: Stack) -> Stack:
    """The service that stops an endpoint after 50 failures in a row, with every process ready."""
    strictly_running.processes.wait_ready()
    return strictly_running


@pytest.fixture(scope="session")
def broadly_running(running: Stack) -> Iterator[Stack]:
    yield from serve(BROAD_PROCESSES, {"WEB_CONCURRENCY": "4"} | same_receiver(running))


@pytest.fixture
def broad(broadly_running: Stack) -> Stack:
    """The service with several web processes, every process ready."""
    broadly_running.processes.wait_ready()
    return broadly_running


@pytest.fixture
def receiver(running: Stack) -> Iterator[Receiver]:
    with Receiver(running.certificates.ca_file.parent) as receiver:
        yield receiver


TALKING = {
    **{"web": 1, "realtime": 1, "writes": 1, "automations": 1, "messages": 2, "deliveries": 1},
    **{"retries": 1, "scheduler": 1},
}


@pytest.fixture(scope="module")
def ports() -> tuple[int, int]:
    return free_port(), free_port()


@pytest.fixture(scope="module")
def talking(ports: tuple[int, int], ends: Ends) -> Iterator[Stack]:
    """A stack whose providers are to be played at these ports."""
    settings = {
        "TELEGRAM_API_URL": f"https://127.0.0.1:{ports[0]}",
        "WHATSAPP_API_URL": f"https://127.0.0.1:{ports[1]}/v23.0",
    }
    yield from serve(TALKING, settings, on_end=ends)


@pytest.fixture
def providers(talking: Stack, ports: tuple[int, int]) -> Iterator[Providers]:
    talking.processes.wait_ready()
    providers = Providers.beside(talking.certificates.ca_file.parent, ports)
    yield providers
    providers.stop()


@pytest.fixture
def webhooks(talking: Stack) -> Iterator[Receiver]:
    with Receiver(talking.certificates.ca_file.parent) as receiver:
        yield receiver

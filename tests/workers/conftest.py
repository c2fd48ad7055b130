"""The other side of workers' requests: a real server, and what its answers may wait for."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Servers
from tests.stack.receiver import Receiver


@pytest.fixture(scope="session")
def listening(servers: Servers) -> Iterator[Receiver]:
    with Receiver(Path(servers.certificates.ca_file).parent) as receiver:
        yield receiver


@pytest.fixture
def receiver(listening: Receiver) -> Iterator[Receiver]:
    """A server that the test tells what to answer."""
    yield listening
    listening.behaviour = None
    listening.answers.clear()
    listening.clear()


@pytest.fixture
def provider(receiver: Receiver) -> Receiver:
    """The same, as the provider of channels."""
    return receiver


@pytest.fixture
def released() -> Iterator[threading.Event]:
    """What the answers of the receiver may wait for; set in the end."""
    event = threading.Event()
    yield event
    event.set()

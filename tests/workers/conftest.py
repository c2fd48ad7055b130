"""The other side of workers' requests: a real server, and what its answers may wait for."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvloop

from tests.cast import until
from tests.conftest import Servers
from tests.stack.receiver import Receiver


@pytest.fixture(autouse=True)
def loops(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Ends the event loops of a test's dispatchers, because their open descriptors would add up."""
    made: list[asyncio.AbstractEventLoop] = []
    make = uvloop.new_event_loop

    def make_and_keep() -> asyncio.AbstractEventLoop:
        made.append(make())
        return made[-1]

    monkeypatch.setattr(uvloop, "new_event_loop", make_and_keep)
    yield
    for loop in made:
        if loop.is_running():
            loop.call_soon_threadsafe(loop.stop)
            until(lambda loop=loop: not loop.is_running())
        loop.close()


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

"""The world of these tests, and a trap in it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvloop

from tests.app.outbound.world import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:  # the sender's kind
        yield World(runner, tmp_path)


@pytest.fixture
def trap() -> Iterator[int]:
    """The port of a socket that nobody may connect to."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        yield int(listener.getsockname()[1])
        with pytest.raises(BlockingIOError):
            listener.accept()

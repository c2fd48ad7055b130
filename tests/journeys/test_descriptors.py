"""Strangers who connect to `realtime` and say nothing, or little, do not take the file descriptors from others."""

from __future__ import annotations

import resource
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from http.client import HTTPConnection, HTTPException

import pytest

from tests.journeys.conftest import serve
from tests.journeys.waiting import wait_until
from tests.stack.ports import free_port
from tests.stack.processes import ROOT
from tests.stack.stack import Stack

DESCRIPTORS = 200
STRANGERS, CONNECTIONS_OF_EACH = 5, 80


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    """The servers and the tables; nothing of ours runs."""
    for stack in serve({}, {}):
        stack.processes.upgrade()
        yield stack


@pytest.fixture
def port(stack: Stack) -> Iterator[int]:
    """A `realtime` process that may open few files."""
    port = free_port()
    environment = {**stack.environment, "REALTIME_PORT": str(port), "METRICS_PORT": "0"}
    limit = (DESCRIPTORS, DESCRIPTORS)
    with subprocess.Popen(
        [sys.executable, "-m", "app.live"],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, limit),
    ) as process:
        try:
            wait_until(lambda: is_alive(port), 30, "realtime serves")
            yield port
            assert process.poll() is None
        finally:
            process.terminate()


def is_alive(port: int) -> bool:
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == 200
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


@pytest.mark.parametrize("said", [b"", b"GET /live/chat HTTP/1.1\r\nX: "], ids=["nothing", "half a request"])
def test_health_checks_are_answered_beside_more_connections_than_descriptors(port: int, said: bytes) -> None:
    with ExitStack() as strangers:
        for number in range(STRANGERS * CONNECTIONS_OF_EACH):
            address = f"127.0.0.{10 + number % STRANGERS}"
            connection = socket.create_connection(("127.0.0.1", port), 20, source_address=(address, 0))
            strangers.enter_context(connection)
            with suppress(OSError):
                connection.sendall(said)
        assert all(is_alive(port) for _ in range(20))

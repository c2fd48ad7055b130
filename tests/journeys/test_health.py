"""Each process says on its own whether it is well."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from app import process_registry
from app.metrics import MOST_PORTS
from tests.journeys.conftest import serve
from tests.journeys.waiting import wait_until
from tests.stack.ports import free_port, free_range
from tests.stack.processes import ROOT
from tests.stack.stack import Stack

METRICS_PORT = str(free_range(MOST_PORTS))


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    """One process of each type."""
    yield from serve(dict.fromkeys(process_registry.TYPES, 1), {"METRICS_PORT": METRICS_PORT})


def asked(stack: Stack, *types: str, **settings: str) -> tuple[int, str]:
    """How the check ends, and what it says."""
    done = subprocess.run(
        [sys.executable, "-m", "app", "health", *types],
        cwd=ROOT,
        env=stack.environment | settings,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    return done.returncode, done.stdout


def asked_of_all(stack: Stack) -> list[tuple[int, str]]:
    """The same for each type, asked beside each other."""
    with ThreadPoolExecutor() as pool:
        return list(pool.map(lambda kind: asked(stack, kind), process_registry.TYPES))


def wait_until_well(stack: Stack, *types: str) -> None:
    wait_until(lambda: asked(stack, *types)[0] == 0, seconds=60)


def wait_until_all_are_well(stack: Stack) -> None:
    wait_until(lambda: {code for code, _ in asked_of_all(stack)} == {0}, seconds=60)


def test_a_process_that_runs_is_well(stack: Stack) -> None:
    wait_until_all_are_well(stack)

    for kind, (_, line) in zip(process_registry.TYPES, asked_of_all(stack), strict=True):
        assert line.startswith(f"ok     {kind}: answers on port ")


def test_a_process_that_does_not_run_is_not_well(stack: Stack) -> None:
    stack.processes.stop()

    said = asked_of_all(stack)

    assert [(code, line[:7], line.count("\n")) for code, line in said] == [(1, "WRONG  ", 1)] * len(
        process_registry.TYPES
    )
    stack.processes.start()


@pytest.mark.parametrize("kind", ["web", "messages"])
def test_a_process_that_hangs_is_not_well(stack: Stack, kind: str) -> None:
    wait_until_well(stack, kind)

    stack.processes.freeze(kind)

    code, line = asked(stack, kind)
    assert code == 1
    assert "does not answer: timed out" in line
    stack.processes.thaw(kind)
    wait_until_well(stack, kind)


def test_a_process_is_well_while_the_servers_are_away(stack: Stack) -> None:
    wait_until_all_are_well(stack)
    stack.redis.stop()
    stack.postgres.stop()

    assert [code for code, _ in asked_of_all(stack)] == [0] * len(process_registry.TYPES)

    stack.start_servers()


def test_without_a_type_the_first_process_is_asked(stack: Stack) -> None:
    wait_until_well(stack)
    others = str(free_port())

    assert asked(stack, METRICS_PORT=others) == (
        1,
        f"WRONG  127.0.0.1:{others} does not answer: [Errno 111] Connection refused\n",
    )
    assert asked(stack, "writes", METRICS_PORT="0") == (
        1,
        "WRONG  METRICS_PORT is 0: only web and realtime can be asked\n",
    )


def test_another_program_on_the_port_is_not_taken_for_a_process(stack: Stack) -> None:
    class Other(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(503 if self.path == "/healthz" else 200)
            self.send_header("Content-Length", "0")
            self.end_headers()

    with HTTPServer(("127.0.0.1", 0), Other) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        port = str(server.server_port)

        assert asked(stack, METRICS_PORT=port) == (1, f"WRONG  127.0.0.1:{port} is no process of Bellhop\n")
        assert asked(stack, "web", PORT=port) == (1, f"WRONG  127.0.0.1:{port}/healthz answers 503\n")
        server.shutdown()

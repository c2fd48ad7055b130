from __future__ import annotations

import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE

import psutil
import pytest
from prometheus_client.parser import text_string_to_metric_families

from app import bells
from app.domain.people import tokens
from app.lib import versions
from tests.cast import Api, until
from tests.conftest import Servers
from tests.stack.ports import free_port
from tests.stack.process import Process
from tests.stack.processes import ROOT, process_types

ALIVE = f'{{"status":"alive","version":"{versions.running()}"}}'
PATIENCE_SECONDS, THREADS, QUOTA = 4, 4, 60

# The service's own configuration, with less patience and fewer threads to keep busy.
CONFIGURATION = f"""
from app.serving import buffering
from app.gunicorn import *

buffering.PATIENCE_SECONDS = {PATIENCE_SECONDS}
threads = {THREADS}
"""


@dataclass(frozen=True)
class Web:
    """A `web` process of two workers."""

    port: int
    metrics_port: int
    process: Process
    temporary: Path

    def connect(self, address: str = "127.0.0.1") -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=30, source_address=(address, 0))

    def ask(self, request: bytes) -> bytes:
        """The whole answer to a request on a connection of its own."""
        with self.connect() as connection:
            connection.sendall(request)
            return read_answer(connection)

    def get(self, path: str) -> str:
        return self._read(self.port, path)

    def metrics(self) -> str:
        return self._read(self.metrics_port, "/metrics")

    def _read(self, port: int, path: str) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
            return str(answer.read().decode())


def read_answer(connection: socket.socket) -> bytes:
    """Head and body, as long as Content-Length says."""
    answer = b""
    while not (head := re.match(rb"(?s).*?\r\n\r\n", answer)):
        received = connection.recv(65536)
        assert received, f"The connection ended after {answer!r}."
        answer += received
    length = int(re.search(rb"(?i)content-length: (\d+)", head[0])[1])  # type: ignore[index]
    while len(answer) < len(head[0]) + length:
        answer += connection.recv(65536)
    return answer


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def post(api: Api, *headers: str) -> bytes:
    lines = [
        f"POST {api.path('contacts')} HTTP/1.1",
        "Host: bellhop.test",
        f"Authorization: Bearer {api.token}",
        "Content-Type: application/json",
        *headers,
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


def get(path: str, *headers: str) -> bytes:
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: bellhop.test", *headers]).encode() + b"\r\n\r\n"


def holders(port: int) -> list[int]:
    """The processes that listen on the port."""
    listening = [each for each in psutil.net_connections("tcp") if each.status == psutil.CONN_LISTEN]
    return [each.pid for each in listening if each.laddr.port == port and each.pid is not None]


@pytest.fixture(scope="module")
def web(servers: Servers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    directory, port, metrics_port = tmp_path_factory.mktemp("web"), free_port(), free_port()
    configuration, temporary = directory / "configuration.py", directory / "temporary"
    configuration.write_text(CONFIGURATION)
    temporary.mkdir()
    command = process_types()["web"].replace("python:app.gunicorn", f"file:{configuration}")
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PORT": str(port),
        "METRICS_PORT": str(metrics_port),
        "WEB_CONCURRENCY": "2",
        "RATE_LIMIT": str(QUOTA),
        "TMPDIR": str(temporary),
    }
    process = Process("web", command, environment, directory / "logs", ROOT)
    process.start()
    made = Web(port, metrics_port, process, temporary)

    def is_ready() -> bool:
        try:
            return 'bellhop_processes{type="web"} 2.0' in made.metrics()
        except OSError:
            return False

    try:
        until(is_ready, seconds=240)  # it is starved beside the stories
        yield made
    finally:
        process.ask_to_stop()
        process.finish(time.monotonic() + 20)


@pytest.mark.parametrize("hosts", [b"", b"Host: a\r\nHost: a\r\n"])
def test_a_request_names_one_host(web: Web, hosts: bytes) -> None:
    assert status(web.ask(b"GET /healthz HTTP/1.1\r\n" + hosts + b"\r\n")) == 400


def test_a_request_of_the_first_version_needs_no_host(web: Web) -> None:
    assert status(web.ask(b"GET /healthz HTTP/1.0\r\n\r\n")) == 200


# Bodies


def test_a_body_that_says_it_is_too_large_is_refused_before_it_is_sent(web: Web, api: Api) -> None:
    answer = web.ask(post(api, "Content-Length: 100000000"))

    assert status(answer) == 413
    assert b"application/problem+json" in answer


def test_filters_as_long_as_fields_may_be_are_read(web: Web, api: Api) -> None:
    filters = f"external_id={'%F0%9F%98%80' * 255}&tag={'%F0%9F%98%80' * 100}"

    answer = web.ask(get(f"/api/v1/contacts?{filters}", f"Authorization: Bearer {api.token}"))

    assert status(answer) == 200


def test_a_chunked_body_is_refused_once_it_is_too_large(web: Web, api: Api) -> None:
    chunk = b"8000\r\n" + b" " * 0x8000 + b"\r\n"

    answer = web.ask(post(api, "Transfer-Encoding: chunked") + chunk * 9)

    assert status(answer) == 413


def test_a_chunked_body_that_is_small_enough_is_read(web: Web, api: Api) -> None:
    body = json.dumps({"email": "ada@example.com"}).encode()

    answer = web.ask(post(api, "Transfer-Encoding: chunked") + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))

    assert status(answer) == 202


def test_whoever_sends_a_body_that_is_too_large_gets_the_answer(web: Web, api: Api) -> None:
    with web.connect() as connection:
        connection.sendall(post(api, "Content-Length: 400000") + b" " * 400_000)

        assert status(read_answer(connection)) == 413


BROKEN_CHUNKS = {
    "a trailer that is no header": b"5\r\na=b&c\r\n0\r\nNo header\r\n\r\n",
    "no number": b"zz\r\n",
    "an extension with NUL": b"5;\0\r\na=b&c\r\n0\r\n\r\n",
    "no end of a chunk": b"5\r\na=b&cXX0\r\n\r\n",
}


@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "multipart/form-data; boundary=x"])
@pytest.mark.parametrize("what", BROKEN_CHUNKS)
def test_a_form_that_breaks_on_its_way_is_no_fault_of_ours(web: Web, what: str, kind: str) -> None:
    head = f"POST /sign-in HTTP/1.1\r\nHost: bellhop.test\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\r\n"

    answer = web.ask(head.encode() + BROKEN_CHUNKS[what])

    assert status(answer) == 400


# Clients that stall


@pytest.mark.parametrize(
    "beginning",
    [b"GET /healthz HTTP/1.1\r\nHost: be", b"{post}{", b""],
    ids=["in the head", "in the body", "before anything"],
)
def test_clients_that_stall_keep_nobody_out_for_good(web: Web, api: Api, beginning: bytes) -> None:
    beginning = beginning.replace(b"{post}", post(api, "Content-Length: 100"))
    with ExitStack() as open_connections:
        for _ in range(THREADS * 2 + 4):
            stalled = open_connections.enter_context(web.connect())
            stalled.sendall(beginning)

        assert web.get("/healthz") == ALIVE


@pytest.mark.parametrize(
    ("number", "beginning"),
    [
        (300, b"GET /healthz HTTP/1.1\r\nHost: be"),
        (40, b"{post}Content-Length: 100\r\n\r\n{"),
        (40, b"{post}Content-Length: 16000000\r\n\r\n{"),
        (40, b"{post}Transfer-Encoding: chunked\r\n\r\n1"),
    ],
    ids=["heads", "small bodies", "large bodies", "bodies of unknown length"],
)
def test_clients_that_trickle_hold_up_nobody(web: Web, api: Api, number: int, beginning: bytes) -> None:
    upload = post(api).replace(b"/contacts ", b"/contacts/import ").replace(b"/json", b"/jsonl")
    beginning = beginning.replace(b"{post}", upload[:-2])
    with ExitStack() as open_connections:
        # Of many addresses, each of which has few.
        slow = [open_connections.enter_context(web.connect(f"127.0.0.{10 + each % 20}")) for each in range(number)]
        for connection in slow:
            connection.sendall(beginning)
        for connection in slow[:10]:
            connection.sendall(b" ")

        answers = [web.get("/healthz") for _ in range(20)]

        # Not because they were cut off.
        assert select.select(slow, [], [], 0)[0] == []
        assert answers == [ALIVE] * 20


def test_uploads_that_wait_for_a_place_are_all_read(web: Web, api: Api) -> None:
    with ExitStack() as open_connections:
        uploads = [open_connections.enter_context(web.connect()) for _ in range(THREADS * 4)]
        for upload in uploads:
            upload.sendall(post(api, "Content-Length: 200000") + b'{"email": "ada@example.com"')
        for upload in uploads:
            upload.sendall(b"}".rjust(200_000 - 27))

        assert [status(read_answer(upload)) for upload in uploads] == [202] * len(uploads)


def test_one_token_leaves_threads_to_others_and_all_its_requests_are_answered(web: Web, api: Api) -> None:
    def waiting(seconds: int) -> bytes:
        return post(api, f"Prefer: wait={seconds}", "Content-Length: 26") + b'{"email":"a@example.com"}\n'

    with ExitStack() as open_connections:
        # No worker runs, so each is under way until its time is over.
        requests = [open_connections.enter_context(web.connect()) for _ in range(THREADS * 4)]
        for request in requests:
            request.sendall(waiting(3))

        answers = [web.get("/healthz") for _ in range(4)]

        assert select.select(requests, [], [], 0)[0] == []
        assert answers == [ALIVE] * 4
        assert {status(read_answer(request)) for request in requests} == {202}
    assert 'bellhop_bounds_reached_total{bound="web_per_caller"}' in web.metrics()


def test_a_client_that_trickles_is_cut_off_and_counted(web: Web, api: Api) -> None:
    with web.connect() as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: be")

        assert connection.recv(1) == b""

    assert 'bellhop_bounds_reached_total{bound="web_progress"}' in web.metrics()


def test_of_too_many_unfinished_requests_of_an_address_the_oldest_is_cut_off(web: Web) -> None:
    with ExitStack() as open_connections:
        # One more than both processes hold together.
        first, *others = [open_connections.enter_context(web.connect("127.0.0.99")) for _ in range(201)]
        for connection in (first, *others):
            connection.sendall(b"G")

        assert select.select([first, *others], [], [], 30)[0]

    assert 'bellhop_bounds_reached_total{bound="web_unfinished_per_address"}' in web.metrics()


def test_clients_that_do_not_close_hold_up_nobody(web: Web) -> None:
    with ExitStack() as open_connections:
        idle = [open_connections.enter_context(web.connect()) for _ in range(40)]
        for connection in idle:
            connection.sendall(get("/healthz", "Connection: close"))
            assert status(read_answer(connection)) == 200
        began = time.monotonic()

        assert web.get("/healthz") == ALIVE

        # One after the other they would take two seconds each of a worker's main thread.
        assert time.monotonic() - began < 10


def test_a_connection_is_kept_for_the_next_request(web: Web) -> None:
    with web.connect() as connection:
        for _ in range(3):
            connection.sendall(get("/healthz"))
            assert status(read_answer(connection)) == 200


# Methods


def test_head_is_answered_without_a_body(web: Web, api: Api) -> None:
    request = get(api.path("contacts"), f"Authorization: Bearer {api.token}", "Connection: close")
    with web.connect() as connection:
        connection.sendall(request.replace(b"GET", b"HEAD", 1))
        answer = b"".join(iter(lambda: connection.recv(65536), b""))

    head, _, body = answer.partition(b"\r\n\r\n")
    assert (status(head), body) == (200, b"")
    assert re.search(rb"(?i)content-length: [1-9]", head)


@pytest.mark.parametrize(("method", "expected"), [(b"OPTIONS", 200), (b"PUT", 405)])
def test_options_and_wrong_methods_tell_what_is_allowed(web: Web, api: Api, method: bytes, expected: int) -> None:
    answer = web.ask(get(api.path("contacts"), "Content-Length: 0").replace(b"GET", method, 1))

    assert status(answer) == expected
    [allowed] = re.findall(rb"(?i)\r\nallow: ([^\r]+)", answer)
    assert set(allowed.split(b", ")) == {b"GET", b"HEAD", b"OPTIONS", b"POST"}


# Several processes


def test_the_limit_holds_for_all_processes_together(web: Web, api: Api) -> None:
    began = time.monotonic()
    request = get("/api/v1/auth/me", f"Authorization: Bearer {api.token}")

    statuses = [status(web.ask(request)) for _ in range(QUOTA * 2)]

    added = (time.monotonic() - began) * QUOTA / 60
    assert set(statuses) == {200, 429}
    assert QUOTA <= statuses.count(200) <= QUOTA + added + 1
    assert statuses[:QUOTA] == [200] * QUOTA


def test_a_revoked_token_is_refused_by_all_processes_within_a_second(web: Web, api: Api) -> None:
    me = get("/api/v1/auth/me", f"Authorization: Bearer {api.token}")
    for _ in range(10):
        assert status(web.ask(me)) == 200
    token_id = json.loads(web.ask(me).partition(b"\r\n\r\n")[2])["data"]["token"]["id"]

    tokens.revoke(token_id)
    revoked_at, seen = time.monotonic(), []
    while not seen or seen[-1][0] < 2:
        sent_at = time.monotonic()
        seen.append((sent_at - revoked_at, status(web.ask(me))))
        bells.flags().delete(f"limit:{token_id}")

    assert {answered for after, answered in seen if after > 1} == {401}


def test_the_public_port_tells_no_figures(web: Web) -> None:
    assert status(web.ask(get("/metrics"))) == 404


def test_another_process_serves_the_figures_when_the_one_that_did_has_died(web: Web) -> None:
    [serving] = holders(web.metrics_port)
    os.kill(serving, signal.SIGKILL)

    def is_served() -> bool:
        try:
            return 'bellhop_processes{type="web"} 2.0' in web.metrics() and holders(web.metrics_port) != [serving]
        except OSError:
            return False

    until(is_served, seconds=60)


def test_one_process_tells_the_figures_of_all(web: Web) -> None:
    def healthy() -> float:
        samples = {
            tuple(sorted(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(web.metrics())
            for sample in family.samples
            if sample.name == "http_requests_total"
        }
        return samples.get((("method", "GET"), ("route", "/healthz"), ("status", "200")), 0.0)

    before = healthy()
    for _ in range(20):
        web.get("/healthz")

    assert [healthy() for _ in range(5)] == [before + 20] * 5


def test_the_processes_are_measured_together(web: Web) -> None:
    told = {
        sample.name: sample
        for family in text_string_to_metric_families(web.metrics())
        for sample in family.samples
        if sample.name.startswith(("process_", "bellhop_processes"))
    }

    assert told["bellhop_processes"].labels == {"type": "web"}
    assert told["process_resident_memory_bytes"].value > 50_000_000
    assert told["process_cpu_seconds_total"].value > 0
    assert "process_start_time_seconds" not in told


@contextmanager
def configured(temporary: Path) -> Iterator[Path]:
    """The directory of figures of a process that has read the configuration; it is killed in the end."""
    program = "from app import gunicorn; print(gunicorn.figures, flush=True); input()"
    environment = os.environ | {"TMPDIR": str(temporary)}
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdin=PIPE, stdout=PIPE, text=True) as process:
        yield Path(process.stdout.readline().strip())  # type: ignore[union-attr]
        process.kill()


def test_the_files_of_a_process_that_was_killed_go_when_another_starts_and_those_of_a_living_one_stay(
    servers: Servers, tmp_path: Path
) -> None:
    with configured(tmp_path) as living:
        with configured(tmp_path) as killed:
            assert set(tmp_path.iterdir()) == {living, killed}
        assert set(tmp_path.iterdir()) == {living, killed}

        with configured(tmp_path) as new:
            assert set(tmp_path.iterdir()) == {living, new}


def test_the_files_of_the_figures_go_with_the_process(web: Web) -> None:
    assert list(web.temporary.glob("bellhop-figures-*"))

    web.process.ask_to_stop()
    web.process.finish(time.monotonic() + 30)

    assert list(web.temporary.glob("bellhop-figures-*")) == []

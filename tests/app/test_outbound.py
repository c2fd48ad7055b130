"""Outbound against real servers on loopback, kind and hostile."""

from __future__ import annotations

import ast
import asyncio
import datetime
import gzip
import itertools
import re
import socket
import ssl
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
import trustme
from hypothesis import given, settings
from hypothesis import strategies as st

from app.lib.addresses import NEVER_DIALLED_V4, NEVER_DIALLED_V6
from app.lib.dialling import Resolver
from app.outbound import LONGEST_BODY, Answer, Outbound

LOOPBACK = ("127.0.0.0/8", "::1/128")
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
AUTHORITY = trustme.CA()
ROOT = Path(__file__).parents[2]
CLOSED = "The server closed the connection without an answer."
TOO_LONG = "The answer is too long."
NOT_HTTP = "The answer is not valid HTTP."
DAY = datetime.timedelta(days=1)

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Names:
    """Plays DNS: each question takes the next of a name's answers, the last one for good."""

    def __init__(self, **names: list[list[str]]) -> None:
        self.names = names
        self.given: list[tuple[int, str]] = []

    async def resolve(self, host: str, port: int) -> list[tuple[int, str]]:
        answers = self.names[host.partition(".")[0]]
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        self.given = [(socket.AF_INET6 if ":" in address else socket.AF_INET, address) for address in answer]
        return self.given


class NoSuchName(Names):
    async def resolve(self, host: str, port: int) -> list[tuple[int, str]]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")


class SilentNames(Names):
    async def resolve(self, host: str, port: int) -> list[tuple[int, str]]:
        if host == "silent.example":
            await asyncio.Event().wait()
        return await super().resolve(host, port)


@dataclass
class Receiver:
    """A TLS server; `talk` is what it does with each connection."""

    talk: Talk
    accepted: int = 0
    requests: list[bytes] = field(default_factory=list)
    writers: list[asyncio.StreamWriter] = field(default_factory=list)
    sent: int = 0
    talks: list[asyncio.Task[None]] = field(default_factory=list)

    async def start(self, certificate: trustme.LeafCert | None, demanding: bool) -> int:
        context = None
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            certificate.configure_cert(context)
            context.verify_mode = ssl.CERT_REQUIRED if demanding else ssl.CERT_NONE
        self.server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=context)
        return int(self.server.sockets[0].getsockname()[1])

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        self.writers.append(writer)
        task = asyncio.current_task()
        assert task is not None
        self.talks.append(task)
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await self.talk(reader, writer)
        writer.transport.abort()

    async def stop(self) -> None:
        self.server.close()
        for talk in self.talks:
            talk.cancel()
        await asyncio.gather(*self.talks, return_exceptions=True)

    async def read_request(self, reader: asyncio.StreamReader) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        self.requests.append(head + await reader.readexactly(length))


@dataclass
class World:
    """A receiver and what was sent to it."""

    runner: asyncio.Runner
    folder: Path
    receiver: Receiver = field(init=False)

    @asynccontextmanager
    async def meeting(
        self,
        talk: Talk,
        *,
        timeout_seconds: float = 5,
        allowed: Sequence[str] = LOOPBACK,
        trusted: trustme.CA | None = AUTHORITY,
        certificate: trustme.LeafCert | None = None,
        plain: bool = False,
        demanding: bool = False,
        resolver: Resolver | None = None,
    ) -> AsyncIterator[tuple[Outbound, int]]:
        """An Outbound, and the port of a receiver that does `talk`."""
        ca_file = None
        if trusted is not None:
            ca_file = self.folder / "ca.pem"
            trusted.cert_pem.write_to_path(str(ca_file))
        leaf = certificate or AUTHORITY.issue_cert("127.0.0.1", "localhost", "shop.example")
        self.receiver = Receiver(talk)
        port = await self.receiver.start(None if plain else leaf, demanding)
        outbound = Outbound(
            timeout_seconds=timeout_seconds,
            allowed_networks=[ip_network(network) for network in allowed],
            ca_file=ca_file,
            resolver=resolver,
        )
        try:
            yield outbound, port
        finally:
            await outbound.close()
            await self.receiver.stop()

    def deliver(
        self,
        talk: Talk,
        *,
        address: str = "https://127.0.0.1:{port}/hook",
        times: int = 1,
        body: bytes = b"{}",
        **options: Any,
    ) -> Answer:
        """Send to a receiver that does `talk`, `times` times one after another; the last answer."""

        async def story() -> Answer:
            async with self.meeting(talk, **options) as (outbound, port):
                for _ in range(times):
                    answer = await outbound.post(address.format(port=port), body, {"Content-Type": "application/json"})
                return answer

        return self.runner.run(story())

    def says(self, *parts: bytes) -> Talk:
        """Answers each request of a connection with these bytes and keeps it open."""

        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while True:
                await self.receiver.read_request(reader)
                writer.write(b"".join(parts))
                await writer.drain()

        return talk

    def says_and_closes(self, *parts: bytes) -> Talk:
        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self.receiver.read_request(reader)
            writer.write(b"".join(parts))
            await writer.drain()
            writer.close()
            await writer.wait_closed()

        return talk

    def says_for_ever(self, start: bytes, again: bytes) -> Talk:
        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self.receiver.read_request(reader)
            writer.write(start)
            while True:
                writer.write(again)
                self.receiver.sent += len(again)
                await writer.drain()
                await asyncio.sleep(0)  # drain() need not wait; others have their turn

        return talk

    def drips(self, start: bytes, dripped: bytes, *, at_once: bool = False) -> Talk:
        """Sends `start`, then `dripped` over and over, a byte each 20 ms; `at_once` without reading the request."""

        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if not at_once:
                await self.receiver.read_request(reader)
            writer.write(start)
            for byte in itertools.cycle(dripped):
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(0.02)

        return talk


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with asyncio.Runner() as runner:
        yield World(runner, tmp_path)


@pytest.fixture
def trap() -> Iterator[int]:
    """The port of a socket that nobody may connect to."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        yield int(listener.getsockname()[1])
        with pytest.raises(BlockingIOError):
            listener.accept()


def own_socket(writer: asyncio.StreamWriter) -> socket.socket:
    """Another handle of its socket; what a loop gives out cannot do everything."""
    return socket.fromfd(writer.get_extra_info("socket").fileno(), socket.AF_INET, socket.SOCK_STREAM)


# What is sent and what comes back


def test_a_2xx_is_a_success_with_its_body(world: World) -> None:
    answer = world.deliver(world.says(OK))
    assert (answer.ok, answer.status, answer.error, answer.body) == (True, 200, None, b"ok")
    assert 0 <= answer.duration_ms < 5000


def test_the_bytes_and_headers_given_are_those_sent(world: World) -> None:
    world.deliver(world.says(OK), body=b'{"name": "\xc3\xa9"}')
    head, _, body = world.receiver.requests[0].partition(b"\r\n\r\n")
    assert body == b'{"name": "\xc3\xa9"}'
    assert head.startswith(b"POST /hook HTTP/1.1\r\nHost: 127.0.0.1:")
    assert b"\r\nContent-Type: application/json" in head
    assert b"\r\nAccept-Encoding: identity" in head


def test_a_204_is_a_success_without_a_body(world: World) -> None:
    answer = world.deliver(world.says(b"HTTP/1.1 204 No Content\r\n\r\n"))
    assert (answer.ok, answer.status, answer.body) == (True, 204, b"")


@pytest.mark.parametrize(
    ("line", "status", "sentence"),
    [
        (b"410 Gone", 410, "The server answered 410 (Gone)."),
        (b"500 Oops", 500, "The server answered 500 (Internal Server Error)."),
        (b"599 Eh", 599, "The server answered 599."),
        (b"304 Not Modified", 304, "Redirects are not followed (304)."),
    ],
)
def test_any_other_status_is_a_failure_that_says_so(world: World, line: bytes, status: int, sentence: str) -> None:
    answer = world.deliver(world.says(b"HTTP/1.1 " + line + b"\r\nContent-Length: 0\r\n\r\n"))
    assert (answer.ok, answer.status, answer.error) == (False, status, sentence)


def test_a_redirect_is_not_followed(world: World) -> None:
    redirect = b"HTTP/1.1 302 Found\r\nLocation: https://elsewhere.example/\xff\r\nContent-Length: 0\r\n\r\n"
    answer = world.deliver(world.says(redirect))
    assert (answer.ok, answer.status) == (False, 302)
    assert answer.error == "Redirects are not followed (302 to https://elsewhere.example/?)."
    assert len(world.receiver.requests) == 1


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_to_a_private_address_is_not_followed(world: World, trap: int, status: int) -> None:
    target = f"https://127.0.0.1:{trap}/private"
    answer = world.deliver(
        world.says(f"HTTP/1.1 {status} Go\r\nLocation: {target}\r\nContent-Length: 0\r\n\r\n".encode())
    )
    assert answer.error == f"Redirects are not followed ({status} to {target})."


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd", "gzip, gzip"])
def test_a_compressed_body_is_noted_and_not_kept(world: World, coding: str) -> None:
    packed = (zlib.compress if coding == "deflate" else gzip.compress)(b"x" * 10_000_000)
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\nContent-Length: {len(packed)}\r\n\r\n"
    answer = world.deliver(world.says(head.encode(), packed))
    assert answer.ok
    assert answer.body == f"(The body is compressed with {coding} and was not kept.)".encode()


def test_cookies_are_not_kept(world: World) -> None:
    cookie = b"HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nContent-Length: 0\r\n\r\n"
    world.deliver(world.says(cookie), times=2)
    assert b"cookie" not in world.receiver.requests[1].lower()


def test_proxies_and_passwords_of_the_environment_are_ignored(
    world: World, trap: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{trap}")
        monkeypatch.setenv(name.lower(), f"http://127.0.0.1:{trap}")
    monkeypatch.setenv("NO_PROXY", "")
    monkeypatch.delenv("no_proxy", raising=False)
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login guest password secret\n")
    (tmp_path / ".netrc").chmod(0o600)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    assert world.deliver(world.says(OK)).ok
    assert b"authorization" not in world.receiver.requests[0].lower()


# Connections


def test_connections_are_reused(world: World) -> None:
    assert world.deliver(world.says(OK), times=5).ok
    assert (world.receiver.accepted, len(world.receiver.requests)) == (1, 5)


def test_a_connection_is_reused_after_a_failure_that_was_read_to_its_end(world: World) -> None:
    world.deliver(world.says(b"HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy"), times=3)
    assert world.receiver.accepted == 1


def test_a_connection_the_server_closed_is_replaced(world: World) -> None:
    closing = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"
    assert world.deliver(world.says_and_closes(closing), times=3).ok
    assert world.receiver.accepted == 3


def test_an_answer_nobody_asked_for_is_no_later_requests_answer(world: World) -> None:
    async def story() -> tuple[Answer, Answer]:
        asked, dropped = asyncio.Event(), asyncio.Event()

        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await world.receiver.read_request(reader)
            writer.write(OK)
            await asked.wait()
            writer.write(b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n")
            with suppress(OSError):
                await reader.read()
            dropped.set()

        async with world.meeting(talk) as (outbound, port):
            first = await outbound.post(f"https://127.0.0.1:{port}/", b"", {})
            asked.set()
            await dropped.wait()
            return first, await outbound.post(f"https://127.0.0.1:{port}/", b"", {})

    first, second = world.runner.run(story())
    assert (first.status, second.status, world.receiver.accepted) == (200, 200, 2)


def hang_up(writer: asyncio.StreamWriter) -> None:
    with own_socket(writer) as connection:
        connection.shutdown(socket.SHUT_RDWR)


def speak_unasked(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n")


@pytest.mark.parametrize("steps", range(6))
@pytest.mark.parametrize("act", [hang_up, speak_unasked])
def test_a_pooled_connection_that_has_ended_is_not_sent_on(
    world: World, act: Callable[[asyncio.StreamWriter], None], steps: int
) -> None:
    async def story() -> Answer:
        async with world.meeting(world.says(OK)) as (outbound, port):
            await outbound.post(f"https://127.0.0.1:{port}/", b"", {})
            act(world.receiver.writers[0])
            for _ in range(steps):  # of the loop, in which it notices the end bit by bit
                await asyncio.sleep(0)
            return await outbound.post(f"https://127.0.0.1:{port}/", b"", {})

    answer = world.runner.run(story())
    assert (answer.status, answer.error) == (200, None)
    assert (world.receiver.accepted, len(world.receiver.requests)) == (2, 2)


def test_a_request_that_may_have_been_received_is_not_sent_again(world: World) -> None:
    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await world.receiver.read_request(reader)
        writer.write(OK)
        await world.receiver.read_request(reader)

    answer = world.deliver(once, times=2)
    assert (answer.status, answer.error) == (None, CLOSED)
    assert (world.receiver.accepted, len(world.receiver.requests)) == (1, 2)


@pytest.mark.parametrize(
    "again",
    [
        OK,
        b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"\0",
    ],
)
def test_a_connection_that_answers_more_than_was_asked_is_dropped(world: World, again: bytes) -> None:
    answer = world.deliver(world.says(OK, again), times=2)
    assert (answer.status, answer.error) == (200, None)
    assert world.receiver.accepted == 2


@pytest.mark.parametrize("status", [b"204 No Content", b"304 Not Modified"])
def test_a_body_where_none_may_be_is_ignored_with_its_connection(world: World, status: bytes) -> None:
    answer = world.deliver(world.says(b"HTTP/1.1 " + status + b"\r\nContent-Length: 5\r\n\r\nextra"), times=2)
    assert (answer.status, answer.body) == (int(status[:3]), b"")
    assert (world.receiver.accepted, len(world.receiver.requests)) == (2, 2)


def test_a_body_of_just_16_kib_is_kept_whole_with_its_connection(world: World) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % LONGEST_BODY
    answer = world.deliver(world.says(head, b"x" * LONGEST_BODY), times=2)
    assert answer.body == b"x" * LONGEST_BODY
    assert world.receiver.accepted == 1


def test_a_longer_body_is_cut_and_its_connection_dropped(world: World) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 50000000\r\n\r\n"
    answer = world.deliver(world.says_for_ever(head, b"x" * 65536), times=2)
    assert (answer.ok, answer.body) == (True, b"x" * LONGEST_BODY)
    assert world.receiver.accepted == 2


# Time


def test_a_server_that_never_answers_fails_at_the_deadline(world: World) -> None:
    answer = world.deliver(world.says(b""), timeout_seconds=0.3)
    assert (answer.ok, answer.status, answer.error) == (False, None, "No answer within 0.3 seconds.")
    assert 300 <= answer.duration_ms < 1300


def test_a_server_that_never_shakes_hands_fails_at_the_deadline(world: World) -> None:
    async def silence(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    answer = world.deliver(silence, plain=True, timeout_seconds=1)
    assert answer.error == "No answer within 1 second."
    assert answer.duration_ms < 2000


def test_a_name_server_that_never_answers_fails_at_the_deadline(world: World) -> None:
    answer = world.deliver(
        world.says(OK), address="https://silent.example:{port}/", resolver=SilentNames(), timeout_seconds=0.3
    )
    assert answer.error == "No answer within 0.3 seconds."
    assert answer.duration_ms < 1300


def test_a_body_that_hangs_leaves_the_success_and_what_came(world: World) -> None:
    answer = world.deliver(world.says(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart"), timeout_seconds=0.3)
    assert (answer.ok, answer.status, answer.error, answer.body) == (True, 200, None, b"part")
    assert answer.duration_ms < 1300


@pytest.mark.parametrize(
    ("start", "dripped", "status", "error"),
    [
        (b"", b"HTTP/1.1 200 " + b"OK" * 1000, None, "No answer within 0.3 seconds."),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n", None, "No answer within 0.3 seconds."),
        (b"HTTP/1.1 204 No Content\r\n", b"X-Again: yes\r\n", 204, None),
        (b"HTTP/1.1 500 No\r\n", b"X-Again: yes\r\n", 500, "The server answered 500 (Internal Server Error)."),
        (
            b"HTTP/1.1 500 No\r\nContent-Length: 100000\r\n\r\n",
            b"x",
            500,
            "The server answered 500 (Internal Server Error).",
        ),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;", b"x", 200, None),
    ],
    ids=["status line", "interim answers", "headers", "headers of a failure", "body", "chunk extension"],
)
def test_an_answer_that_drips_ends_at_the_deadline(
    world: World, start: bytes, dripped: bytes, status: int | None, error: str | None
) -> None:
    answer = world.deliver(world.drips(start, dripped), timeout_seconds=0.3)
    assert (answer.status, answer.error) == (status, error)
    assert len(answer.body) < 100
    assert 300 <= answer.duration_ms < 1300


def test_a_handshake_that_drips_ends_at_the_deadline(world: World) -> None:
    talk = world.drips(b"\x16\x03\x03\x40\x00\x02\x00\x3f\xfc", b"x", at_once=True)
    answer = world.deliver(talk, plain=True, timeout_seconds=0.3)
    assert answer.error == "No answer within 0.3 seconds."
    assert answer.duration_ms < 1300


@pytest.mark.parametrize(
    ("said", "status", "error"),
    [(b"", None, "No answer within 0.3 seconds."), (b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n", 202, None)],
    ids=["says nothing", "answers early"],
)
def test_a_server_that_never_reads_the_request_is_bounded(
    world: World, said: bytes, status: int | None, error: str | None
) -> None:
    async def deaf(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(said)
        await asyncio.Event().wait()

    answer = world.deliver(deaf, timeout_seconds=0.3, body=b"x" * 5_000_000)
    assert (answer.status, answer.error) == (status, error)
    assert answer.duration_ms < 1300


def test_a_status_line_is_enough_even_if_the_headers_hang(world: World) -> None:
    answer = world.deliver(world.says(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 202 Accepted\r\nX-"), timeout_seconds=0.3)
    assert (answer.ok, answer.status, answer.error) == (True, 202, None)


def test_half_a_status_line_is_not_enough(world: World) -> None:
    answer = world.deliver(world.says(b"HTTP/1.1 200 O"), timeout_seconds=0.3)
    assert (answer.ok, answer.status) == (False, None)


def test_a_status_line_of_an_earlier_answer_counts_for_nothing(world: World) -> None:
    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await world.receiver.read_request(reader)
        writer.write(OK)
        await world.receiver.read_request(reader)
        await reader.read()

    answer = world.deliver(once, times=2, timeout_seconds=0.3)
    assert (answer.status, world.receiver.accepted) == (None, 1)


def test_a_cancelled_request_is_cancelled(world: World) -> None:
    async def story() -> None:
        arrived = asyncio.Event()

        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await world.receiver.read_request(reader)
            arrived.set()
            await reader.read()

        async with world.meeting(talk) as (outbound, port):
            sending = asyncio.create_task(outbound.post(f"https://127.0.0.1:{port}/", b"", {}))
            await arrived.wait()
            sending.cancel()
            with pytest.raises(asyncio.CancelledError):
                await sending

    world.runner.run(story())


def test_closing_ends_a_request_under_way_as_failed(world: World) -> None:
    async def story() -> Answer:
        arrived = asyncio.Event()

        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await world.receiver.read_request(reader)
            arrived.set()
            await reader.read()

        async with world.meeting(talk) as (outbound, port):
            sending = asyncio.create_task(outbound.post(f"https://127.0.0.1:{port}/", b"", {}))
            await arrived.wait()
            await outbound.close()
            return await sending

    answer = world.runner.run(story())
    assert (answer.ok, answer.status) == (False, None)
    assert answer.duration_ms < 2000


def test_closing_twice_is_harmless(world: World) -> None:
    async def story() -> None:
        async with world.meeting(world.says(OK)) as (outbound, port):
            await outbound.post(f"https://127.0.0.1:{port}/", b"", {})
            await outbound.close()

    world.runner.run(story())


def test_a_silent_name_server_delays_no_other_name(world: World) -> None:
    async def story() -> Answer:
        names = SilentNames(shop=[["127.0.0.1"]])
        async with world.meeting(world.says(OK), resolver=names) as (outbound, port):
            hanging = [asyncio.create_task(outbound.post("https://silent.example/", b"", {})) for _ in range(100)]
            answer = await outbound.post(f"https://shop.example:{port}/", b"", {})
            for task in hanging:
                task.cancel()
            await asyncio.gather(*hanging, return_exceptions=True)
            return answer

    answer = world.runner.run(story())
    assert answer.ok
    assert answer.duration_ms < 2000


# Servers that break rules


def test_a_server_that_closes_at_once_is_said_to(world: World) -> None:
    answer = world.deliver(world.says_and_closes())
    assert (answer.status, answer.error) == (None, "The server closed the connection without an answer.")


def test_a_server_that_closes_before_tls_is_said_to(world: World) -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        pass

    answer = world.deliver(hang_up, plain=True)
    assert answer.error == "The server closed the connection without an answer."


def test_a_server_without_tls_is_said_to_lack_it(world: World) -> None:
    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await reader.read()

    answer = world.deliver(plain, plain=True)
    assert answer.error == "The server does not speak TLS on this port."


def test_a_server_that_wants_a_certificate_of_ours_gets_none(world: World) -> None:
    answer = world.deliver(world.says(OK), demanding=True)
    assert answer.status is None
    # In TLS 1.3 its alert and its closing race each other.
    assert answer.error in {
        "No TLS connection could be made: tlsv13 alert certificate required.",
        "The server closed the connection without an answer.",
    }


def test_a_closed_port_is_said_to_refuse(world: World) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        answer = world.deliver(world.says(OK), address=f"https://127.0.0.1:{taken.getsockname()[1]}/")
    assert (answer.status, answer.error) == (None, "The connection was refused.")


@pytest.mark.parametrize(
    "garbage",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
        b"\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x64",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"HTTP/2 200 OK\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\n\r\n",
        b"HTTP/1.1 20 OK\r\n\r\n",
        b"\0" * 1000,
    ],
    ids=["SSH", "settings of HTTP/2", "preface of HTTP/2", "HTTP/2", "a request", "two digits", "zeros"],
)
def test_garbage_is_not_http(world: World, garbage: bytes) -> None:
    answer = world.deliver(world.says(garbage))
    assert (answer.status, answer.error) == (None, NOT_HTTP)


@pytest.mark.parametrize("part", [b"HTTP", b"HTTP/1.1 200 O", b"HTTP/1.1 100 Continue\r\n\r\n"])
def test_an_answer_that_breaks_off_before_its_status_is_none(world: World, part: bytes) -> None:
    answer = world.deliver(world.says_and_closes(part))
    assert (answer.status, answer.error) == (None, CLOSED)


@pytest.mark.parametrize("part", [b"", b"X-Half: ", b"Content-Length: 9\r\n\r\npart"])
def test_an_answer_that_breaks_off_after_its_status_has_it(world: World, part: bytes) -> None:
    answer = world.deliver(world.says_and_closes(b"HTTP/1.1 201 Created\r\n" + part))
    assert (answer.ok, answer.status) == (True, 201)


def test_a_connection_that_is_reset_is_said_to_be_closed(world: World) -> None:
    async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with own_socket(writer) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        await world.receiver.read_request(reader)

    answer = world.deliver(reset)
    assert (answer.status, answer.error) == (None, CLOSED)


def test_a_change_of_protocol_is_a_failure(world: World) -> None:
    answer = world.deliver(
        world.says_for_ever(b"HTTP/1.1 101 Go\r\nUpgrade: ws\r\nConnection: upgrade\r\n\r\n", b"x" * 65536)
    )
    assert (answer.status, answer.error) == (101, "The server answered 101 (Switching Protocols).")


# Each would go on for a gigabyte and more.
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
ENDLESS = {
    "status line": (b"HTTP/1.1 200 ", b"x" * 65536, None, TOO_LONG),
    "interim answers": (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 2000, None, TOO_LONG),
    "headers": (b"HTTP/1.1 200 OK\r\n", b"X-Again: yes\r\n" * 4000, 200, None),
    "one header": (b"HTTP/1.1 200 OK\r\nX-Long: ", b"x" * 65536, 200, None),
    "body": (b"HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n", b"x" * 65536, 200, None),
    "body without a length": (b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 65536, 200, None),
    "compressed body": (
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n",
        gzip.compress(b"x" * 10_000_000),
        200,
        None,
    ),
    "chunk": (CHUNKED + b"40000000\r\n", b"x" * 65536, 200, None),
    "chunks": (CHUNKED, (b"4000\r\n" + b"x" * 16384 + b"\r\n") * 4, 200, None),
    "chunk size": (CHUNKED, b"0" * 65536, 200, None),
    "chunk extension": (CHUNKED + b"1;", b"x" * 65536, 200, None),
    "trailers": (CHUNKED + b"0\r\n", b"X-Again: yes\r\n" * 4000, 200, None),
    "garbage": (b"", b"\0" * 65536, None, NOT_HTTP),
    "answers": (b"", OK * 1500, 200, None),
}


@pytest.mark.parametrize(("start", "again", "status", "error"), ENDLESS.values(), ids=ENDLESS)
def test_an_answer_without_end_is_cut_off_in_little_memory(
    world: World, start: bytes, again: bytes, status: int | None, error: str | None
) -> None:
    tracemalloc.start()
    try:
        answer = world.deliver(world.says_for_ever(start, again))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (answer.status, answer.error) == (status, error)
    assert len(answer.body) <= LONGEST_BODY
    assert answer.duration_ms < 4000
    assert peak < 8_000_000
    assert world.receiver.sent < 32_000_000  # sockets have buffers of their own


@pytest.mark.parametrize("header", [b"X-Again: yes\r\n", b"x" * 1000])
def test_endless_headers_are_cut_off(world: World, header: bytes) -> None:
    answer = world.deliver(world.says_for_ever(b"HTTP/1.1 403 No\r\n", header))
    assert (answer.status, answer.error) == (403, "The server answered 403 (Forbidden).")
    assert answer.duration_ms < 2000


def test_many_tiny_chunks_are_read_up_to_the_limit(world: World) -> None:
    start = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    answer = world.deliver(world.says_for_ever(start, b"1\r\nx\r\n" * 100))
    assert (answer.ok, answer.body) == (True, b"x" * LONGEST_BODY)
    assert answer.duration_ms < 4000


def test_any_bytes_at_all_give_an_answer(world: World) -> None:
    tokens = [
        b"HTTP/1.1 200 OK\r\n",
        b"Content-Length: 5\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"\r\n",
        b"\n",
        b"5\r\n",
    ]
    pieces = st.lists(st.sampled_from(tokens) | st.binary(max_size=8), max_size=8)

    @settings(max_examples=60, deadline=None, derandomize=True)
    @given(pieces=pieces)
    def any_bytes(pieces: list[bytes]) -> None:
        answer = world.deliver(world.says_and_closes(*pieces))
        assert answer.ok == (answer.error is None)

    any_bytes()


# Certificates


def self_signed() -> trustme.LeafCert:
    authority = trustme.CA()
    return trustme.LeafCert(authority.private_key_pem.bytes(), authority.cert_pem.bytes(), [])


def around_now(start: int, end: int) -> trustme.LeafCert:
    """A certificate that is valid between these days from now."""
    now = datetime.datetime.now(datetime.UTC)
    return AUTHORITY.issue_cert("127.0.0.1", not_before=now + start * DAY, not_after=now + end * DAY)


@pytest.mark.parametrize(
    ("certificate", "reason"),
    [
        (trustme.CA().issue_cert("127.0.0.1"), "unable to get local issuer certificate"),
        (self_signed(), "self-signed certificate"),
        (AUTHORITY.issue_cert("8.8.8.8"), "IP address mismatch, certificate is not valid for '127.0.0.1'"),
        (around_now(-2, -1), "certificate has expired"),
        (around_now(1, 2), "certificate is not yet valid"),
    ],
    ids=["unknown authority", "self-signed", "another name", "expired", "not yet valid"],
)
def test_a_certificate_that_is_not_valid_is_refused(world: World, certificate: trustme.LeafCert, reason: str) -> None:
    answer = world.deliver(world.says(OK), certificate=certificate)
    assert answer.error == f"The certificate is not valid: {reason}."
    assert world.receiver.requests == []


def test_a_name_that_is_not_in_the_certificate_is_refused(world: World) -> None:
    names = Names(other=[["127.0.0.1"]])
    answer = world.deliver(world.says(OK), address="https://other.example:{port}/", resolver=names)
    reason = "Hostname mismatch, certificate is not valid for 'other.example'"
    assert answer.error == f"The certificate is not valid: {reason}."


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
@pytest.mark.parametrize("version", ["TLSv1", "TLSv1_1"])
def test_an_old_version_of_tls_is_refused(world: World, version: str) -> None:
    async def old(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Not through start_server: that hangs up without telling why.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        AUTHORITY.issue_cert("127.0.0.1").configure_cert(context)
        context.set_ciphers("ALL:@SECLEVEL=0")
        context.minimum_version = context.maximum_version = ssl.TLSVersion[version]
        heard, said = ssl.MemoryBIO(), ssl.MemoryBIO()
        heard.write(await reader.read(65536))
        with suppress(ssl.SSLError):
            context.wrap_bio(heard, said, server_side=True).do_handshake()
        writer.write(said.read())
        await reader.read()

    answer = world.deliver(old, plain=True)
    assert answer.error == "The server speaks no version of TLS from 1.2 on."


def test_an_old_version_of_tls_that_is_answered_with_anyway_is_refused(world: World) -> None:
    hello = b"\2\0\0\x26" + b"\3\2" + bytes(32) + b"\0" + b"\0\x2f" + b"\0"

    async def old(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"\x16\3\2\0\x2a" + hello)
        await reader.read()

    answer = world.deliver(old, plain=True)
    assert answer.error == "The server speaks no version of TLS from 1.2 on."


# Addresses


def test_only_https_is_sent_to(world: World) -> None:
    answer = world.deliver(world.says(OK), plain=True, address="http://127.0.0.1:{port}/")
    assert answer == Answer(None, "The address must begin with https://.", b"", answer.duration_ms)
    assert world.receiver.accepted == 0


def test_a_private_address_is_not_dialled(world: World) -> None:
    answer = world.deliver(world.says(OK), allowed=())
    assert (answer.status, answer.error) == (None, "127.0.0.1 is not a public address.")
    assert world.receiver.accepted == 0


@pytest.mark.parametrize(
    "private",
    [
        "127.0.0.1",
        "10.0.0.5",
        "169.254.169.254",
        "0.0.0.0",
        "::1",
        "::",
        "::7f00:1",
        "::ffff:127.0.0.1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "fe80::1%lo",
        "fd00::1",
    ],
)  # fmt: skip
def test_a_name_that_leads_to_a_private_address_is_not_dialled(world: World, private: str) -> None:
    names = Names(shop=[[private]])
    answer = world.deliver(world.says(OK), allowed=(), address="https://shop.example:{port}/", resolver=names)
    assert (answer.status, answer.error) == (None, f"The address resolves to {private}, which is not public.")
    assert world.receiver.accepted == 0


# 127.0.0.1 stands for a public address in these: it is the only one allowed.
@pytest.mark.parametrize(
    "addresses",
    [["10.0.0.5", "127.0.0.1", "169.254.169.254"], ["127.0.0.1", "::1"], ["::1", "fe80::1", "127.0.0.1"]],
)
def test_private_addresses_among_others_are_not_dialled(world: World, addresses: list[str]) -> None:
    answer = world.deliver(
        world.says(OK),
        address="https://shop.example:{port}/",
        resolver=Names(shop=[addresses]),
        allowed=["127.0.0.1/32"],
    )
    assert answer.ok
    assert world.receiver.accepted == 1


REFUSED = "The connection was refused."


@pytest.mark.parametrize(
    ("addresses", "error"),
    [
        (["10.0.0.5", "10.0.0.6"], "The address resolves to 10.0.0.5, which is not public."),
        (["10.0.0.5", "::1"], "The address resolves to 10.0.0.5, which is not public."),
        (["127.0.0.1", "10.0.0.5"], REFUSED),
        (["::1", "127.0.0.1"], REFUSED),
        (["127.0.0.1", "127.0.0.2"], REFUSED),
        (["127.0.0.1", "ff02::1"], "No address of shop.example can be reached."),
    ],
)
def test_what_is_said_of_several_addresses_is_said_of_those_that_were_dialled(
    world: World, addresses: list[str], error: str
) -> None:
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))
        answer = world.deliver(
            world.says(OK),
            address=f"https://shop.example:{taken.getsockname()[1]}/",
            resolver=Names(shop=[addresses]),
            allowed=["127.0.0.0/8", "ff02::/16"],
        )
    assert (answer.status, answer.error) == (None, error)


def test_a_name_that_changes_its_answer_gains_nothing(world: World) -> None:
    names = Names(shop=[["127.0.0.1"], ["127.0.0.2"]])
    closing = world.says_and_closes(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")

    async def story() -> tuple[Answer, Answer]:
        async with world.meeting(closing, resolver=names, allowed=["127.0.0.1/32"]) as (outbound, port):
            # Names are remembered for ten seconds, by host and port; a trailing dot makes another host of it.
            first = await outbound.post(f"https://shop.example:{port}/", b"", {})
            return first, await outbound.post(f"https://shop.example.:{port}/", b"", {})

    first, second = world.runner.run(story())
    assert first.ok
    assert second.error == "The address resolves to 127.0.0.2, which is not public."
    assert world.receiver.accepted == 1


def test_an_address_that_changes_between_check_and_use_gains_nothing(world: World) -> None:
    names = Names(shop=[["127.0.0.1"]])
    closing = world.says_and_closes(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")

    async def story() -> tuple[Answer, Answer]:
        async with world.meeting(closing, resolver=names, allowed=["127.0.0.1/32"]) as (outbound, port):
            first = await outbound.post(f"https://shop.example:{port}/", b"", {})
            names.given[0] = (socket.AF_INET, "127.0.0.2")
            return first, await outbound.post(f"https://shop.example:{port}/", b"", {})

    first, second = world.runner.run(story())
    assert first.ok
    assert second.error == "The address resolves to 127.0.0.2, which is not public."
    assert world.receiver.accepted == 1


def test_the_systems_resolver_is_asked_by_default(world: World) -> None:
    answer = world.deliver(world.says(OK), address="https://localhost:{port}/")
    assert answer.ok


def test_a_name_without_an_address_is_said_to_be_unknown(world: World) -> None:
    answer = world.deliver(world.says(OK), address="https://shop.example:{port}/", resolver=NoSuchName())
    assert (answer.status, answer.error) == (None, "The name shop.example could not be resolved.")


# The page that explains the sentences


def sentences(path: Path) -> set[str]:
    """Every sentence in a module's code, with "…" for what is filled in."""
    tree = ast.parse(path.read_text())
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            pieces = [str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values]
            found.add(re.sub("…+", "…", "".join(pieces)))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and not {id(node)} & (parts | prose):
            found.add(node.value)
    return {text for text in found if re.fullmatch("[A-Z…].* .*[.]", text)}


def test_the_page_explains_every_sentence_and_no_other() -> None:
    page = (ROOT / "docs" / "outbound.md").read_text()
    explained = set(re.findall(r"^\| `(.+?)` \| .+ \| .+ \|$", page, re.MULTILINE))
    assert explained == sentences(ROOT / "app/outbound.py") | sentences(ROOT / "app/lib/addresses.py")


def test_the_page_has_every_network_that_is_never_dialled() -> None:
    page = (ROOT / "docs" / "outbound.md").read_text()
    assert [str(network) for network in NEVER_DIALLED_V4 + NEVER_DIALLED_V6 if f"`{network}`" not in page] == []

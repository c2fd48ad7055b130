"""Outbound against real servers on loopback, kind and hostile."""

from __future__ import annotations

import ast
import asyncio
import datetime
import gzip
import itertools
import os
import random
import re
import socket
import ssl
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
import trustme
import uvloop
from hypothesis import given, settings
from hypothesis import strategies as st

from app.lib import dialling, pool
from app.lib.addresses import NEVER_DIALLED_V4, NEVER_DIALLED_V6
from app.lib.dialling import Resolver
from app.outbound import LONGEST_BODY, Answer, Outbound, _system_sentence

LOOPBACK = ("127.0.0.0/8", "::1/128")
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
AUTHORITY = trustme.CA()
ROOT = Path(__file__).parents[2]
CLOSED = "The server closed the connection without an answer."
TOO_LONG = "The answer is too long."
NOT_HTTP = "The answer is not valid HTTP."
DAY = datetime.timedelta(days=1)
# What takes longer has hung: nothing here ends an answer that the deadline does not.
HUNG_MS = 10_000
# A deadline before which a busy machine has shaken hands and read the beginning of an answer.
AMPLE = 2

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
        timeout_seconds: float = 20,
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


def own_socket(writer: asyncio.StreamWriter) -> socket.socket:
    """Another handle of its socket; what a loop gives out cannot do everything."""
    return socket.fromfd(writer.get_extra_info("socket").fileno(), socket.AF_INET, socket.SOCK_STREAM)


def sockets() -> int:
    """How many this process has open; a loop has other file descriptors of its own, and takes more as it likes."""
    count = 0
    for entry in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):
            count += os.readlink(f"/proc/self/fd/{entry}").startswith("socket:")
    return count


async def no_more_than(before: int) -> bool:
    """Whether there are soon no more sockets than that; a loop closes sockets in a later step."""
    for _ in range(2000):
        if sockets() <= before:
            return True
        await asyncio.sleep(0.01)
    return False


# What is sent and what comes back


def test_a_2xx_is_a_success_with_its_body(world: World) -> None:
    answer = world.deliver(world.says(OK))
    assert (answer.ok, answer.status, answer.error, answer.body) == (True, 200, None, b"ok")
    assert 0 <= answer.duration_ms < HUNG_MS


def test_the_bytes_and_headers_given_are_those_sent(world: World) -> None:
    world.deliver(world.says(OK), body=b'{"name": "\xc3\xa9"}')
    head, _, body = world.receiver.requests[0].partition(b"\r\n\r\n")
    assert body == b'{"name": "\xc3\xa9"}'
    assert head.startswith(b"POST /hook HTTP/1.1\r\nHost: 127.0.0.1:")
    assert b"\r\nContent-Type: application/json" in head
    assert b"\r\nAccept-Encoding: identity" in head


@pytest.mark.parametrize(
    ("entered", "sent"),
    [
        ("", "/"),
        ("?a", "/?a"),
        ("/", "/"),
        ("//a//b/", "//a//b/"),
        ("/a/../b/./c", "/b/c"),
        ("/a%20b?c%20d+e", "/a%20b?c%20d+e"),
        ("/é/日本?ü=ß", "/%C3%A9/%E6%97%A5%E6%9C%AC?%C3%BC=%C3%9F"),
        ("/%C3%A9%2f%2F%3f%23", "/%C3%A9%2F%2F%3F%23"),
        ("/100%/%zz?%", "/100%25/%25zz?%25"),
        ("/%0d%0aX-Evil:%201%00", "/%0D%0AX-Evil:%201%00"),
        ("/a?b=/?:@&c=%26%3D%2B;d", "/a?b=/?:@&c=%26%3D%2B;d"),
        ('/<a>{b}|^`?"', "/%3Ca%3E%7Bb%7D%7C%5E%60?%22"),
    ],
)
def test_the_path_goes_out_as_it_was_entered_with_what_must_be_encoded(world: World, entered: str, sent: str) -> None:
    port = 0

    async def story() -> None:
        nonlocal port
        async with world.meeting(world.says(OK)) as (outbound, port):
            assert (await outbound.post(f"https://127.0.0.1:{port}{entered}", b"", {})).ok

    world.runner.run(story())
    lines = world.receiver.requests[0].split(b"\r\n")
    assert lines[0] == f"POST {sent} HTTP/1.1".encode()
    assert lines[1] == b"Host: 127.0.0.1:%d" % port
    assert b"X-Evil" not in b"".join(lines[1:])


@pytest.mark.parametrize(
    "evil", ["\r\nX-Evil: 1", "\nX-Evil: 1", "\rX-Evil: 1", "\r\n\r\nPOST / HTTP/1.1", "\0", "\ud800"]
)
@pytest.mark.parametrize("named", [True, False], ids=["name", "value"])
def test_a_header_that_would_break_its_line_is_not_sent(world: World, evil: str, named: bool) -> None:
    headers = {f"X-A{evil}": "a"} if named else {"X-A": f"a{evil}"}

    async def story() -> None:
        async with world.meeting(world.says(OK)) as (outbound, port):
            with pytest.raises(ValueError, match=r"line break|surrogates"):
                await outbound.post(f"https://127.0.0.1:{port}/", b"", headers)

    world.runner.run(story())
    assert world.receiver.accepted == 0


@pytest.mark.parametrize("evil", ["\r\n", "\n", "\r", "\0", "\u2028", "\ud800", "\t", " "])
@pytest.mark.parametrize(
    "place", ["https://127.0.0.1{evil}:{port}/", "https://127.0.0.1:{port}/a{evil}b", "{evil}https://127.0.0.1:{port}/"]
)
def test_an_address_that_would_break_its_line_is_not_dialled(world: World, place: str, evil: str) -> None:
    answer = world.deliver(world.says(OK), address=place.replace("{evil}", evil))
    assert answer.error == "The address contains a space, a backslash or a control character."
    assert world.receiver.accepted == 0


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
            [pooled] = outbound._pool._open
            assert pooled._news.poll(20_000)  # it has arrived, which may take a moment on a busy machine
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


KEPT = {
    "HTTP/1.0": (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", 2),
    "HTTP/1.0 that is kept": (b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok", 1),
    "close": (b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", 2),
    "close among others": (b"HTTP/1.1 200 OK\r\nConnection: x, CLOSE\r\nContent-Length: 2\r\n\r\nok", 2),
    "chunks": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", 1),
    "trailers": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nContent-Encoding: gzip\r\n\r\n",
        1,
    ),
    "interim answers": (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nLink: a\r\n\r\n" + OK, 1),
    "empty lines after it": (OK + b"\r\n\r\n", 1),
}


@pytest.mark.parametrize(("said", "accepted"), KEPT.values(), ids=KEPT)
def test_a_connection_is_kept_if_the_server_keeps_it_and_the_answer_has_ended(
    world: World, said: bytes, accepted: int
) -> None:
    answer = world.deliver(world.says(said), times=2)
    assert (answer.status, answer.error, answer.body) == (200, None, b"ok")
    assert world.receiver.accepted == accepted


def together(outbound: Outbound, port: int, number: int) -> list[asyncio.Future[Answer]]:
    return [outbound.post(f"https://127.0.0.1:{port}/", b"", {}) for _ in range(number)]


def test_requests_that_come_together_share_connections(world: World) -> None:
    async def story() -> list[Answer]:
        async with world.meeting(world.says(OK)) as (outbound, port):
            return await asyncio.gather(*together(outbound, port, 300))

    assert all(answer.ok for answer in world.runner.run(story()))
    assert world.receiver.accepted < 150


def test_requests_that_wait_get_connections_of_their_own_where_none_comes_free(world: World) -> None:
    number = 4 * pool.OPENING

    async def story() -> list[Answer]:
        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await world.receiver.read_request(reader)
            while len(world.receiver.requests) < number:
                await asyncio.sleep(0.01)
            writer.write(OK)

        async with world.meeting(talk) as (outbound, port):
            return await asyncio.gather(*together(outbound, port, number))

    assert all(answer.ok for answer in world.runner.run(story()))
    assert world.receiver.accepted == number


def test_waiting_for_a_connection_ends_at_the_deadline(world: World) -> None:
    async def silence(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read()

    async def story() -> list[Answer]:
        async with world.meeting(silence, plain=True, timeout_seconds=0.5) as (outbound, port):
            return await asyncio.gather(*together(outbound, port, 3 * pool.OPENING))

    answers = world.runner.run(story())
    assert {answer.error for answer in answers} == {"No answer within 0.5 seconds."}
    assert max(answer.duration_ms for answer in answers) < HUNG_MS
    assert world.receiver.accepted < 2 * pool.OPENING


def test_servers_without_connections_are_forgotten(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "SWEEP_SECONDS", 0.05)

    async def story() -> None:
        async with world.meeting(world.says(OK), resolver=Names(silent=[[]])) as (outbound, port):
            await asyncio.gather(*[outbound.post(f"https://silent.{n}.example:{port}/", b"", {}) for n in range(20)])
            while outbound._pool._servers:
                await asyncio.sleep(0.01)

    world.runner.run(story())


def test_an_idle_connection_that_is_too_old_is_not_used(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "IDLE_SECONDS", 0)
    assert world.deliver(world.says(OK), times=3).ok
    assert world.receiver.accepted == 3


def test_idle_connections_are_closed_in_time(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "IDLE_SECONDS", 0.1)
    monkeypatch.setattr(pool, "SWEEP_SECONDS", 0.05)

    async def story() -> None:
        async with world.meeting(world.says(OK)) as (outbound, port):
            before = sockets()
            await asyncio.gather(*[outbound.post(f"https://127.0.0.1:{port}/", b"", {}) for _ in range(5)])
            assert sockets() > before
            assert await no_more_than(before)
            assert (await outbound.post(f"https://127.0.0.1:{port}/", b"", {})).ok

    world.runner.run(story())
    assert world.receiver.accepted == 6


def test_half_of_the_idle_connections_go_if_there_are_too_many(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "MOST_OPEN", 8)
    letters = "abcdefghi"

    async def story() -> None:
        names = Names(**{letter: [["127.0.0.1"]] for letter in letters})
        certificate = AUTHORITY.issue_cert("*.shop.example")
        async with world.meeting(world.says(OK), resolver=names, certificate=certificate) as (outbound, port):
            for letter in letters + "ia":  # the last one was used last, the first one is dropped
                assert (await outbound.post(f"https://{letter}.shop.example:{port}/", b"", {})).ok

    world.runner.run(story())
    assert world.receiver.accepted == 10


WAYS = ["answers"] * 6 + ["is late", "is split", "chunks", "ends", "is old", "says more", "adds", "hangs up", "resets"]


def test_each_of_many_requests_gets_its_own_answer_whatever_the_server_does(world: World) -> None:
    dice = random.Random(7)
    ways: dict[bytes, str] = {}

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await world.receiver.read_request(reader)
            name = world.receiver.requests[-1].partition(b"X-Service-Delivery: ")[2].partition(b"\r\n")[0]
            assert name not in ways
            way = ways[name] = dice.choice(WAYS)
            answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(name), name)
            match way:
                case "answers":
                    writer.write(answer)
                case "is late":
                    await asyncio.sleep(dice.random() / 100)
                    writer.write(answer)
                case "is split":
                    place = dice.randrange(len(answer))
                    writer.write(answer[:place])
                    await asyncio.sleep(dice.random() / 100)
                    writer.write(answer[place:])
                case "chunks":
                    writer.write(CHUNKED + b"%x\r\n%b\r\n0\r\nX-Late: yes\r\n\r\n" % (len(name), name))
                case "ends":
                    writer.write(answer.replace(b"\r\n", b"\r\nConnection: close\r\n", 1))
                    await reader.read()
                    return
                case "is old":
                    writer.write(b"HTTP/1.0 200 OK\r\n\r\n" + name)
                    writer.close()
                    await writer.wait_closed()
                case "says more":
                    writer.write(answer + OK)
                case "adds":
                    writer.write(answer)
                    writer.write(OK[: dice.randrange(1, len(OK))])
                case "hangs up":
                    return
                case "resets":
                    with own_socket(writer) as connection:
                        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                    return

    async def story() -> dict[bytes, Answer]:
        answers: dict[bytes, Answer] = {}
        before = sockets()
        async with world.meeting(talk, timeout_seconds=30) as (outbound, port):
            numbers = iter(range(2000))

            async def send() -> None:
                for number in numbers:
                    name = f"dlv_{number:x}"
                    headers = {"X-Service-Delivery": name}
                    answers[name.encode()] = await outbound.post(f"https://127.0.0.1:{port}/", b"x" * 99, headers)

            await asyncio.gather(*[send() for _ in range(24)])
        assert await no_more_than(before)
        return answers

    answers = world.runner.run(story())
    assert len(answers) == 2000
    for name, answer in answers.items():
        # One that never arrived crossed with the end of its connection.
        failed = ways.get(name, "crossed") in {"hangs up", "resets", "crossed"}
        expected = (None, CLOSED, b"") if failed else (200, None, name)
        assert (answer.status, answer.error, answer.body) == expected, (name, ways.get(name))
    assert len(ways) > 1900


# Time


def test_a_server_that_never_answers_fails_at_the_deadline(world: World) -> None:
    answer = world.deliver(world.says(b""), timeout_seconds=0.3)
    assert (answer.ok, answer.status, answer.error) == (False, None, "No answer within 0.3 seconds.")
    assert 300 <= answer.duration_ms < HUNG_MS


def test_a_server_that_never_shakes_hands_fails_at_the_deadline(world: World) -> None:
    async def silence(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    answer = world.deliver(silence, plain=True, timeout_seconds=1)
    assert answer.error == "No answer within 1 second."
    assert answer.duration_ms < HUNG_MS


def test_a_name_server_that_never_answers_fails_at_the_deadline(world: World) -> None:
    answer = world.deliver(
        world.says(OK), address="https://silent.example:{port}/", resolver=SilentNames(), timeout_seconds=0.3
    )
    assert answer.error == "No answer within 0.3 seconds."
    assert answer.duration_ms < HUNG_MS


def test_a_body_that_hangs_leaves_the_success_and_what_came(world: World) -> None:
    answer = world.deliver(world.says(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart"), timeout_seconds=AMPLE)
    assert (answer.ok, answer.status, answer.error, answer.body) == (True, 200, None, b"part")
    assert answer.duration_ms < HUNG_MS


@pytest.mark.parametrize(
    ("start", "dripped", "status", "error"),
    [
        (b"", b"HTTP/1.1 200 " + b"OK" * 1000, None, "No answer within 2 seconds."),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n", None, "No answer within 2 seconds."),
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
    answer = world.deliver(world.drips(start, dripped), timeout_seconds=AMPLE)
    assert (answer.status, answer.error) == (status, error)
    assert len(answer.body) < 1000
    assert AMPLE * 1000 <= answer.duration_ms < HUNG_MS


def test_a_handshake_that_drips_ends_at_the_deadline(world: World) -> None:
    talk = world.drips(b"\x16\x03\x03\x40\x00\x02\x00\x3f\xfc", b"x", at_once=True)
    answer = world.deliver(talk, plain=True, timeout_seconds=0.3)
    assert answer.error == "No answer within 0.3 seconds."
    assert answer.duration_ms < HUNG_MS


@pytest.mark.parametrize(
    ("said", "status", "error"),
    [(b"", None, "No answer within 2 seconds."), (b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n", 202, None)],
    ids=["says nothing", "answers early"],
)
def test_a_server_that_never_reads_the_request_is_bounded(
    world: World, said: bytes, status: int | None, error: str | None
) -> None:
    async def deaf(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(said)
        await asyncio.Event().wait()

    answer = world.deliver(deaf, timeout_seconds=AMPLE, body=b"x" * 5_000_000)
    assert (answer.status, answer.error) == (status, error)
    assert answer.duration_ms < HUNG_MS


def test_a_status_line_is_enough_even_if_the_headers_hang(world: World) -> None:
    answer = world.deliver(
        world.says(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 202 Accepted\r\nX-"), timeout_seconds=AMPLE
    )
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

    answer = world.deliver(once, times=2, timeout_seconds=AMPLE)
    assert (answer.status, world.receiver.accepted) == (None, 1)


@pytest.mark.parametrize("moment", ["lookup", "handshake", "answer", "body"])
def test_a_request_that_runs_out_of_time_leaves_no_socket(world: World, moment: str) -> None:
    async def story() -> None:
        gone = asyncio.Event()

        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if moment == "handshake":
                await reader.read(1)
            else:
                await world.receiver.read_request(reader)
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n" if moment == "body" else b"")
            with suppress(OSError):
                await reader.read()
            gone.set()

        options: dict[str, Any] = {"resolver": SilentNames(), "plain": moment == "handshake", "timeout_seconds": AMPLE}
        async with world.meeting(talk, **options) as (outbound, port):
            before = sockets()
            host = "silent.example" if moment == "lookup" else "127.0.0.1"
            answer = await outbound.post(f"https://{host}:{port}/", b"", {})
            assert (answer.ok, answer.status) == ((True, 200) if moment == "body" else (False, None))
            if moment != "lookup":
                await asyncio.wait_for(gone.wait(), 20)
            assert await no_more_than(before)
            assert not outbound._pool._open

    world.runner.run(story())


def test_closing_leaves_no_socket_of_many_requests_under_way(world: World) -> None:
    async def story() -> list[Answer]:
        before = sockets()
        async with world.meeting(world.says(b"")) as (outbound, port):
            posts = [outbound.post(f"https://127.0.0.1:{port}/", b"", {}) for _ in range(30)]
            while len(world.receiver.requests) < 20:  # some are still shaking hands
                await asyncio.sleep(0.01)
            await outbound.close()
            answers = await asyncio.gather(*posts)
            assert not outbound._pool._open
        assert await no_more_than(before)
        return answers

    answers = world.runner.run(story())
    assert {(answer.status, answer.error) for answer in answers} == {(None, CLOSED)}
    assert max(answer.duration_ms for answer in answers) < HUNG_MS


def test_closing_during_a_handshake_leaves_no_socket(world: World) -> None:
    async def story() -> Answer:
        before = sockets()
        arrived = asyncio.Event()

        async def silence(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            arrived.set()
            await reader.read()

        async with world.meeting(silence, plain=True, timeout_seconds=0.5) as (outbound, port):
            sending = outbound.post(f"https://127.0.0.1:{port}/", b"", {})
            await arrived.wait()
            await outbound.close()
            answer = await sending
            assert not outbound._pool._open
        assert await no_more_than(before)
        return answer

    assert world.runner.run(story()).status is None


def test_a_connection_that_was_never_made_is_let_go(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    async def dial(*_: object) -> None:
        """As when a transport is lost in the handshake and does not say so."""

    async def story() -> list[Answer]:
        async with world.meeting(world.says(OK)) as (outbound, port):
            monkeypatch.setattr(dialling.Dialler, "dial", dial)
            lost = await outbound.post(f"https://127.0.0.1:{port}/", b"", {})
            assert not outbound._pool._open
            monkeypatch.undo()
            return [lost, await outbound.post(f"https://localhost:{port}/", b"", {})]

    lost, kept = world.runner.run(story())
    assert (lost.status, lost.error, kept.ok) == (None, CLOSED, True)


def test_nothing_is_sent_after_closing(world: World) -> None:
    async def story() -> Answer:
        async with world.meeting(world.says(OK)) as (outbound, port):
            await outbound.close()
            return await outbound.post(f"https://localhost:{port}/", b"", {})

    answer = world.runner.run(story())
    assert (answer.status, answer.error, world.receiver.accepted) == (None, CLOSED, 0)


def test_closing_ends_a_request_under_way_as_failed(world: World) -> None:
    async def story() -> Answer:
        arrived = asyncio.Event()

        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await world.receiver.read_request(reader)
            arrived.set()
            await reader.read()

        async with world.meeting(talk) as (outbound, port):
            sending = outbound.post(f"https://127.0.0.1:{port}/", b"", {})
            await arrived.wait()
            await outbound.close()
            return await sending

    answer = world.runner.run(story())
    assert (answer.ok, answer.status) == (False, None)
    assert answer.duration_ms < HUNG_MS


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
            hanging = [outbound.post("https://silent.example/", b"", {}) for _ in range(100)]
            answer = await outbound.post(f"https://shop.example:{port}/", b"", {})
            for task in hanging:
                task.cancel()
            await asyncio.gather(*hanging, return_exceptions=True)
            return answer

    answer = world.runner.run(story())
    assert answer.ok
    assert answer.duration_ms < HUNG_MS


class SlowNames(Names):
    """Counts how often it is asked; takes its time."""

    asked = 0
    seconds = 0.05

    async def resolve(self, host: str, port: int) -> list[tuple[int, str]]:
        self.asked += 1
        await asyncio.sleep(self.seconds)
        return await super().resolve(host, port)


def test_a_name_is_looked_up_once_however_many_wait_for_it(world: World) -> None:
    names = SlowNames(shop=[["127.0.0.1"]])

    async def story() -> list[Answer]:
        async with world.meeting(world.says(OK), resolver=names) as (outbound, port):
            posts = [outbound.post(f"https://shop.example:{port}/", b"", {}) for _ in range(20)]
            await asyncio.sleep(0.01)
            posts.pop(0).cancel()  # the first one asked, and the others still get what it asked for
            return await asyncio.gather(*posts)

    assert all(answer.ok for answer in world.runner.run(story()))
    assert names.asked == 1


@pytest.mark.parametrize(("old", "ok"), [(60, True), (0, False)])
def test_a_known_name_is_still_reached_while_its_name_server_is_silent(
    world: World, monkeypatch: pytest.MonkeyPatch, old: float, ok: bool
) -> None:
    monkeypatch.setattr(dialling, "REMEMBERED_SECONDS", 0)
    monkeypatch.setattr(dialling, "LATE_SECONDS", 0.1)
    monkeypatch.setattr(dialling, "OLD_SECONDS", old)
    names = SlowNames(shop=[["127.0.0.1"]])
    closing = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"

    async def story() -> Answer:
        async with world.meeting(world.says(closing), resolver=names, timeout_seconds=AMPLE) as (outbound, port):
            assert (await outbound.post(f"https://shop.example:{port}/", b"", {})).ok
            names.seconds = 60
            return await outbound.post(f"https://shop.example:{port}/", b"", {})

    assert world.runner.run(story()).ok == ok
    assert names.asked == 2


@contextmanager
def deaf_to_connections(address: str, port: int) -> Iterator[None]:
    """A listener whose queue is full, so that it answers nobody."""
    with socket.socket() as listener, ExitStack() as waiting:
        listener.bind((address, port))
        listener.listen(0)
        for _ in range(4):
            waiter = waiting.enter_context(socket.socket())
            waiter.setblocking(False)
            waiter.connect_ex((address, port))
        yield


def test_an_address_that_is_silent_holds_up_the_next_for_a_head_start_only(world: World) -> None:
    names = Names(shop=[["127.0.0.2", "127.0.0.1"]])

    async def story() -> Answer:
        async with world.meeting(world.says(OK), resolver=names) as (outbound, port):
            with deaf_to_connections("127.0.0.2", port):
                before = sockets()
                answer = await outbound.post(f"https://shop.example:{port}/", b"", {})
                assert await no_more_than(before + 2)  # both ends of the connection that is kept
                return answer

    answer = world.runner.run(story())
    assert answer.ok
    assert 250 <= answer.duration_ms < HUNG_MS


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


def test_an_old_kind_of_signature_is_named_though_python_has_no_name_for_it() -> None:
    error = ssl.SSLError(1, "[SSL] legacy sigalg disallowed or unsupported (_ssl.c:992)")
    assert _system_sentence(error) == "No TLS connection could be made: legacy sigalg disallowed or unsupported."


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
    assert answer.duration_ms < HUNG_MS
    assert peak < 8_000_000
    assert world.receiver.sent < 32_000_000  # sockets have buffers of their own


@pytest.mark.parametrize("header", [b"X-Again: yes\r\n", b"x" * 1000])
def test_endless_headers_are_cut_off(world: World, header: bytes) -> None:
    answer = world.deliver(world.says_for_ever(b"HTTP/1.1 403 No\r\n", header))
    assert (answer.status, answer.error) == (403, "The server answered 403 (Forbidden).")
    assert answer.duration_ms < HUNG_MS


def test_many_tiny_chunks_are_read_up_to_the_limit(world: World) -> None:
    start = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    answer = world.deliver(world.says_for_ever(start, b"1\r\nx\r\n" * 100))
    assert (answer.ok, answer.body) == (True, b"x" * LONGEST_BODY)
    assert answer.duration_ms < HUNG_MS


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
        "::ffff:0:7f00:1",
        "64:ff9b::7f00:1",
        "2001::80ff:fffe",
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
    modules = ("app/outbound.py", "app/lib/addresses.py", "workers/sender.py")
    assert explained == set().union(*(sentences(ROOT / module) for module in modules))


def test_the_page_has_every_network_that_is_never_dialled() -> None:
    page = (ROOT / "docs" / "outbound.md").read_text()
    assert [str(network) for network in NEVER_DIALLED_V4 + NEVER_DIALLED_V6 if f"`{network}`" not in page] == []

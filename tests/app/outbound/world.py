"""A receiver that plays all kinds of servers, and what sends to it."""

from __future__ import annotations

import asyncio
import datetime
import itertools
import os
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import trustme

from app.outbound import Answer, Outbound
from app.outbound.names import Resolver

LOOPBACK = ("127.0.0.0/8", "::1/128")
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
AUTHORITY = trustme.CA()
ROOT = Path(__file__).parents[3]
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
    """A TLS server; `talk` is what it does with each connection, `delay` how long it waits before it shakes hands."""

    talk: Talk
    delay: Callable[[], float] | None = None
    context: ssl.SSLContext = field(init=False)
    closing: ExitStack = field(default_factory=ExitStack)
    accepted: int = 0
    requests: list[bytes] = field(default_factory=list)
    writers: list[asyncio.StreamWriter] = field(default_factory=list)
    sent: int = 0
    talks: list[asyncio.Task[None]] = field(default_factory=list)

    async def start(self, certificate: trustme.LeafCert, *, plain: bool, demanding: bool) -> int:
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        certificate.configure_cert(self.context)
        self.context.verify_mode = ssl.CERT_REQUIRED if demanding else ssl.CERT_NONE
        if self.delay is not None:
            return self._start_late()
        context = None if plain else self.context
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=context)
        self.closing.callback(server.close)
        return int(server.sockets[0].getsockname()[1])

    def _start_late(self) -> int:
        loop = asyncio.get_running_loop()
        listener = self.closing.enter_context(socket.create_server(("127.0.0.1", 0), backlog=1000))
        listener.setblocking(False)

        async def accept() -> None:
            while True:
                connection, _ = await loop.sock_accept(listener)
                self.talks.append(loop.create_task(shake_hands(connection)))

        async def shake_hands(connection: socket.socket) -> None:
            assert self.delay is not None
            await asyncio.sleep(self.delay())
            protocol = asyncio.StreamReaderProtocol(asyncio.StreamReader(), self._accept)
            await loop.connect_accepted_socket(lambda: protocol, connection, ssl=self.context)

        self.talks.append(loop.create_task(accept()))
        return int(listener.getsockname()[1])

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
        self.closing.close()
        for talk in self.talks:
            talk.cancel()
        await asyncio.gather(*self.talks, return_exceptions=True)

    async def read_request(self, reader: asyncio.StreamReader) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
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
        plain_hosts: Sequence[str] = (),
        demanding: bool = False,
        resolver: Resolver | None = None,
        delay: Callable[[], float] | None = None,
    ) -> AsyncIterator[tuple[Outbound, int]]:
        """An Outbound, and the port of a receiver that does `talk`."""
        ca_file = None
        if trusted is not None:
            ca_file = self.folder / "ca.pem"
            trusted.cert_pem.write_to_path(str(ca_file))
        leaf = certificate or AUTHORITY.issue_cert("127.0.0.1", "localhost", "shop.example")
        self.receiver = Receiver(talk, delay)
        port = await self.receiver.start(leaf, plain=plain, demanding=demanding)
        outbound = Outbound(
            timeout_seconds=timeout_seconds,
            allowed_networks=[ip_network(network) for network in allowed],
            ca_file=ca_file,
            plain_addresses=[f"http://{host}:{port}" for host in plain_hosts],
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


def together(outbound: Outbound, port: int, number: int) -> list[asyncio.Future[Answer]]:
    return [outbound.post(f"https://127.0.0.1:{port}/", b"", {}) for _ in range(number)]


class SlowNames(Names):
    """Counts how often it is asked; takes its time."""

    asked = 0
    seconds = 0.05

    async def resolve(self, host: str, port: int) -> list[tuple[int, str]]:
        self.asked += 1
        await asyncio.sleep(self.seconds)
        return await super().resolve(host, port)

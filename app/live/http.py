"""HTTP for streams: reads one request from a connection, and then only writes.

The event loop's callback writes to streams directly, without a task for each: with 2,000 listeners, most of the cost of
an event would be tasks.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import cast
from urllib.parse import parse_qsl, urlsplit

import httptools

from app import bounds, metrics
from app.lib.addresses import network_of

HEAD_SECONDS = 10.0
_VANISHED_MS = 30_000

Handle = Callable[["Connection", "Request"], None]


@dataclass(frozen=True, slots=True)
class Request:
    """A request. Header names are in lower case.

    If a header is repeated, the last one counts; the values of X-Forwarded-For are joined.
    """

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]


class Heads:
    """Connections whose request head is not complete yet. Above a bound, the oldest is cut off.

    An honest client has sent its head long before it is the oldest.
    """

    def __init__(self, most: int, by_address: bool) -> None:
        self._most = most
        self._by_address = by_address
        self._all: dict[Connection, None] = {}
        self._of: dict[str, dict[Connection, None]] = {}

    def begin(self, connection: Connection) -> None:
        """Adds a connection whose request begins. May cut off the oldest connection."""
        self._all[connection] = None
        theirs = self._of.setdefault(connection.peer, {})
        theirs[connection] = None
        if self._by_address and len(theirs) > bounds.LIVE_HEADS_PER_ADDRESS.most:
            bounds.LIVE_HEADS_PER_ADDRESS.reached()
            next(iter(theirs)).cut_off()
        elif len(self._all) > min(self._most, bounds.LIVE_HEADS.most):
            bounds.LIVE_HEADS.reached()
            next(iter(self._all)).cut_off()

    def end(self, connection: Connection) -> None:
        """Removes a connection whose request is complete or has been given up. Safe to repeat."""
        self._all.pop(connection, None)
        theirs = self._of.get(connection.peer, {})
        theirs.pop(connection, None)
        if not theirs:
            self._of.pop(connection.peer, None)


class Connection(asyncio.Protocol):
    """A connection with one request. Once it is lost, calls the functions in `at_end`."""

    def __init__(self, loop: asyncio.AbstractEventLoop, handle: Handle, heads: Heads) -> None:
        self._loop = loop
        self._handle = handle
        self._heads = heads
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._received = 0
        self._url = b""
        self._headers: dict[str, str] = {}
        self._hosts = 0
        self._is_asked = False
        self.peer = ""
        self.at_end: list[Callable[[], None]] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._deadline = self._loop.call_later(HEAD_SECONDS, self.cut_off)
        self.peer = network_of(str((transport.get_extra_info("peername") or ("",))[0]))
        self._heads.begin(self)
        used = transport.get_extra_info("socket")
        if used is not None and used.family in (socket.AF_INET, socket.AF_INET6):
            # Notices clients that vanished silently.
            used.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _VANISHED_MS)

    def data_received(self, data: bytes) -> None:
        if self._is_asked:
            return  # pipelined requests are not answered
        self._received += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            return  # already answered; we speak no other protocol (RFC 9110, 7.8)
        except httptools.HttpParserError:
            if not self._is_asked:
                self.answer(400, {}, b"")
            return
        if self._received > bounds.LIVE_HEAD.most and not self._is_asked:
            bounds.LIVE_HEAD.reached()
            self.answer(431, {}, b"")

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_head()
        while self.at_end:
            self.at_end.pop()()

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._hosts += name.lower() == b"host"
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        if key == "x-forwarded-for" and key in self._headers:  # repeated lines are one list (RFC 9110, 5.3)
            text = f"{self._headers[key]}, {text}"
        self._headers[key] = text

    def on_headers_complete(self) -> None:
        """Handles the request. A body, if any, is not read."""
        try:
            parts = urlsplit(self._url.decode("latin-1"))
            query = dict(parse_qsl(parts.query, max_num_fields=20))
        except ValueError:
            self.answer(400, {}, b"")
            return
        # RFC 9112, section 3.2: exactly one Host header, which only HTTP/1.0 may omit.
        if self._hosts > 1 or (not self._hosts and self._parser.get_http_version() != "1.0"):
            self.answer(400, {}, b"")
            return
        self._is_asked = True
        self._end_head()
        self._handle(self, Request(self._parser.get_method().decode(), parts.path, query, self._headers))

    @property
    def is_lost(self) -> bool:
        """Whether nothing more can be sent."""
        return self._transport is None or self._transport.is_closing()

    def answer(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        """Sends a complete response, and closes the connection."""
        self._is_asked = True
        self._end_head()
        self.begin(status, {**headers, "Content-Length": str(len(body))})
        if self._transport is not None:
            self._transport.write(body)
            self._transport.close()

    def begin(self, status: int, headers: Mapping[str, str]) -> None:
        """Sends the head of a response whose body ends when the connection closes."""
        lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}"]
        lines += [f"{name}: {value}" for name, value in {**headers, "Connection": "close"}.items()]
        self.send(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))

    def send(self, data: bytes) -> None:
        """Sends part of the body. A client that reads too slowly is cut off, and has to reconnect."""
        if self._transport is None or self._transport.is_closing():
            return
        self._transport.write(data)
        if self._transport.get_write_buffer_size() > bounds.LIVE_BUFFER.most:
            bounds.LIVE_BUFFER.reached()
            metrics.LIVE_DROPPED.labels("slow").inc()
            self._transport.abort()

    def end(self) -> None:
        """Closes the connection once everything has been sent."""
        if self._transport is not None:
            self._transport.close()

    def cut_off(self) -> None:
        """Closes the connection at once, without sending what is buffered."""
        self._end_head()
        if self._transport is not None:
            self._transport.abort()

    def _end_head(self) -> None:
        self._heads.end(self)
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

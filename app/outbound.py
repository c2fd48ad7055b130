"""The only door to other people's servers: deadlines, size caps and address checks."""

from __future__ import annotations

import asyncio
import errno
import functools
import os
import re
import select
import socket
import ssl
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import dataclass
from http.client import responses as phrases
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import hdrs
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.client_proto import ResponseHandler
from aiohttp.http_exceptions import HttpProcessingError, LineTooLong

from app.lib.addresses import Network, check_address, is_public

LONGEST_BODY = 16 * 1024
LONGEST_HEAD = 64 * 1024  # everything before the body, with any 1xx answers
LONGEST_ANSWER = 1024 * 1024  # on the wire: chunk sizes and extensions count, and what was sent before we could stop it
MOST_ADDRESSES = 8  # of one name; each is tried in turn, so a name with thousands would keep the loop busy
RESOLVER_THREADS = 64  # getaddrinfo cannot be cancelled: a name whose server is silent holds its thread for a while

CLOSED = "The server closed the connection without an answer."
NO_TLS = "The server does not speak TLS on this port."
OLD_TLS = "The server speaks no version of TLS from 1.2 on."
TLS_SENTENCES = {
    "WRONG_VERSION_NUMBER": NO_TLS,
    "UNSUPPORTED_PROTOCOL": OLD_TLS,
    "TLSV1_ALERT_PROTOCOL_VERSION": OLD_TLS,
}

INTERIM_HEADS = rb"(?:HTTP/1\.[01] 1\d\d[^\r\n]*\r?\n(?:[^\r\n]+\r?\n)*\r?\n)*"
STATUS_LINE = re.compile(INTERIM_HEADS + rb"HTTP/1\.[01] ([2-5]\d\d)(?: [^\r\n]*)?\r?\n")


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of one request. `error` says why it failed, for a support person; it is None exactly if `ok`.

    `status` is None if no status line came in time; `body` is at most 16 KiB, as sent, and empty or cut off if
    the rest did not come in time.
    """

    status: int | None
    error: str | None
    body: bytes
    duration_ms: int

    @property
    def ok(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


class Outbound:
    """A pool of connections to other people's servers. It belongs to the event loop of its first request.

    `connections` limits how many are open at once (0: no limit). Nothing in `allowed_networks` is refused as private.
    The certificates in `ca_file` are trusted beside the system's.
    """

    def __init__(
        self,
        *,
        timeout_seconds: float,
        allowed_networks: Sequence[Network],
        ca_file: Path | None,
        connections: int = 0,
        resolver: AbstractResolver | None = None,
    ) -> None:
        self._timeout_seconds = timeout_seconds
        self._allowed_networks = tuple(allowed_networks)
        self._connections = connections
        self._resolver = _PublicAddresses(resolver or _Resolver(), self._allowed_networks)
        self._tls = ssl.create_default_context()
        self._tls.set_alpn_protocols(["http/1.1"])
        if ca_file is not None:
            self._tls.load_verify_locations(ca_file)
        self._session: aiohttp.ClientSession | None = None
        self._check = functools.lru_cache(maxsize=1024)(
            functools.partial(check_address, allowed=self._allowed_networks)
        )

    async def post(self, address: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        """Send `body` to `address` once, following nothing, and tell what came of it within the timeout.

        Never raises for anything the other side does. A 2xx status line that comes in time is a success, whatever
        happens to the rest of the answer.
        """
        loop = asyncio.get_running_loop()
        started = loop.time()
        attempt = _Attempt()
        refusal = self._check(address)
        if refusal is None:
            try:
                async with asyncio.timeout_at(started + self._timeout_seconds):
                    await self._exchange(attempt, address, body, headers)
            except TimeoutError:
                attempt.failed(f"No answer within {_seconds(self._timeout_seconds)}.")
            except (aiohttp.ClientError, HttpProcessingError, OSError) as error:
                attempt.failed(_sentence(error))
        else:
            attempt.failed(refusal)
        return attempt.answer(duration_ms=round((loop.time() - started) * 1000))

    async def close(self) -> None:
        """Drop every connection. Safe to repeat; requests under way end as failed."""
        if self._session is not None:
            await self._session.close()
        await self._resolver.close()

    async def _exchange(self, attempt: _Attempt, address: str, body: bytes, headers: Mapping[str, str]) -> None:
        session = self._session or self._open()
        _current_attempt.set(attempt)
        response = await session.post(address, data=body, headers=headers, allow_redirects=False)
        try:
            attempt.answered(response)
            content = response.content
            while len(attempt.body) < LONGEST_BODY and not content.at_eof():
                attempt.body += await content.read(LONGEST_BODY - len(attempt.body))
        finally:
            # A connection whose answer was read to its end is in the pool by now; this closes any other.
            response.close()

    def _open(self) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(
            ssl=self._tls,
            resolver=self._resolver,
            limit=self._connections,
            ttl_dns_cache=10,
            keepalive_timeout=30,
            socket_factory=self._socket,
        )
        conversation = functools.partial(_Conversation, loop=asyncio.get_running_loop())
        connector._factory = conversation  # type: ignore[assignment]  # there is no public way to give it
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={hdrs.ACCEPT_ENCODING: "identity", hdrs.USER_AGENT: "Bellhop"},
            # aiohttp's own timeouts are rounded up to whole seconds; there is one deadline, and it is in post().
            timeout=aiohttp.ClientTimeout(),
            auto_decompress=False,
            trust_env=False,
            read_bufsize=LONGEST_BODY,
        )
        return self._session

    def _socket(self, address_info: tuple[Any, ...]) -> socket.socket:
        # Here too, and not only where names are resolved: this sees the very address that is dialled next, for names
        # and literals alike, so an answer of DNS that changes between check and use gains nothing.
        family, kind, protocol, _, (host, *_) = address_info
        if not is_public(ip_address(host), self._allowed_networks):
            raise _NotPublic(host)
        return socket.socket(family, kind, protocol)


class _NotPublic(OSError):
    """A name leads to an address that is never dialled."""

    def __str__(self) -> str:
        return f"The address resolves to {self.args[0]}, which is not public."


class _TooLong(HttpProcessingError):
    """An answer, or its head, goes on and on."""


class _Attempt:
    """What is known of a request so far, so that running out of time loses nothing that came."""

    __slots__ = ("body", "compression", "connection", "error", "location", "status")

    def __init__(self) -> None:
        self.status: int | None = None
        self.location: str | None = None
        self.compression: str | None = None
        self.error: str | None = None
        self.body = b""
        self.connection: _Conversation | None = None

    def answered(self, response: aiohttp.ClientResponse) -> None:
        self.status = response.status
        self.location = response.headers.get(hdrs.LOCATION)
        self.compression = response.headers.get(hdrs.CONTENT_ENCODING)

    def failed(self, error: str) -> None:
        self.error = error
        if self.status is None and self.connection is not None:
            self.status = self.connection.status_line_seen()

    def answer(self, duration_ms: int) -> Answer:
        body = self.body
        if body and self.compression and self.compression.lower() != "identity":
            body = f"(The body is compressed with {_printable(self.compression, 40)} and was not kept.)".encode()
        return Answer(self.status, self._verdict(), body, duration_ms)

    def _verdict(self) -> str | None:
        if self.status is None:
            return self.error
        if 200 <= self.status < 300:
            return None
        if 300 <= self.status < 400:
            target = f" to {_printable(self.location, 500)}" if self.location else ""
            return f"Redirects are not followed ({self.status}{target})."
        phrase = phrases.get(self.status)
        return f"The server answered {self.status} ({phrase})." if phrase else f"The server answered {self.status}."


_current_attempt: ContextVar[_Attempt] = ContextVar("_current_attempt")


class _Conversation(ResponseHandler):
    """A connection that keeps an answer's head until it is whole, and hangs up on one that goes on and on.

    aiohttp tells nothing of an answer before its last header, but it is the status line that decides an attempt.
    """

    _head: bytearray | None = None
    _received = 0
    _ended = False

    def set_response_params(self, **params: Any) -> None:
        # Called for each request, in the task that sends it.
        _current_attempt.get().connection = self
        self._head = bytearray()
        self._received = 0
        super().set_response_params(**params)

    def data_received(self, data: bytes) -> None:
        if self._head is not None:
            self._head += data[:LONGEST_HEAD]
        elif data and (self._payload is None or self._payload.is_eof()):
            # Unasked for, like the 408 some balancers send before they hang up; the next request would get it.
            self.abort()
            return
        self._received += len(data)
        super().data_received(data)
        if self._received > LONGEST_ANSWER or (self._head is not None and len(self._head) > LONGEST_HEAD):
            self.set_exception(_TooLong())
            if self.transport is not None:
                self.transport.abort()

    def feed_data(self, data: Any, size: int = 0) -> None:
        if not 100 <= data[0].code < 200:
            self._head = None
        super().feed_data(data, size)

    def eof_received(self) -> None:
        self._ended = True
        super().eof_received()

    def is_connected(self) -> bool:
        # Asked before a connection of the pool is used again. What has come and is not read yet can only be its end,
        # or an answer to nothing; a request sent after it would be lost, and that looks like a failed one.
        if self._ended or self.transport is None or self.transport.is_closing():
            return False
        connection = self.transport.get_extra_info("socket")
        if connection is None or connection.fileno() < 0:
            return False
        news = select.poll()
        news.register(connection.fileno(), select.POLLIN)
        return not news.poll(0)

    def close(self) -> None:
        # A polite end of TLS waits up to 30 seconds for the other side's; a silent one would hold the socket that long.
        self.abort()

    def status_line_seen(self) -> int | None:
        found = STATUS_LINE.match(self._head) if self._head else None
        return int(found[1]) if found else None


class _PublicAddresses(AbstractResolver):
    """Leaves out the addresses that are never dialled, so that a failure tells of those that were.

    aiohttp makes one error of those of several addresses, with nothing left of what each was.
    """

    def __init__(self, resolver: AbstractResolver, allowed: Sequence[Network]) -> None:
        self._resolver = resolver
        self._allowed = allowed

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        found = await self._resolver.resolve(host, port, family)
        public = [address for address in found if is_public(ip_address(address["host"]), self._allowed)]
        if found and not public:
            raise _NotPublic(found[0]["host"])
        return public

    async def close(self) -> None:
        await self._resolver.close()


class _Resolver(AbstractResolver):
    """The system's resolver, in threads of its own."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(RESOLVER_THREADS, thread_name_prefix="resolver")

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        kind = socket.SOCK_STREAM
        lookup = functools.partial(socket.getaddrinfo, host.encode(), port, family, kind, flags=socket.AI_ADDRCONFIG)
        found = await asyncio.get_running_loop().run_in_executor(self._threads, lookup)
        flags = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
        return [
            ResolveResult(hostname=host, host=str(end[0]), port=port, family=version, proto=protocol, flags=flags)
            for version, _, protocol, _, end in found[:MOST_ADDRESSES]
        ]

    async def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def _sentence(error: Exception) -> str:
    match error:
        case aiohttp.ClientConnectorCertificateError(certificate_error=ssl.SSLCertVerificationError() as reason):
            return f"The certificate is not valid: {reason.verify_message.rstrip('.')}."
        case aiohttp.ClientConnectorDNSError(os_error=_NotPublic() as reason):
            return str(reason)
        case aiohttp.ClientConnectorDNSError():
            return f"The name {error.host} could not be resolved."
        case aiohttp.ClientConnectorError(os_error=OSError(errno=None) as reason) if type(reason) is OSError:
            # Several addresses, and each failed in its own way.
            return f"No address of {error.host} can be reached."
        case aiohttp.ClientConnectorError(os_error=reason):
            return _system_sentence(reason)
        case aiohttp.ServerDisconnectedError():
            return CLOSED
        case aiohttp.ClientOSError(__cause__=ssl.SSLError() as reason):
            return _system_sentence(reason)
        case OSError():
            return _system_sentence(error)
        case aiohttp.ClientResponseError(__cause__=_TooLong() | HttpProcessingError(__cause__=LineTooLong())):
            return "The answer is too long."
        case aiohttp.ClientResponseError() | aiohttp.ClientPayloadError() | HttpProcessingError():
            return "The answer is not valid HTTP."
    return "The request could not be sent."


def _system_sentence(error: OSError) -> str:
    match error:
        case _NotPublic():
            return str(error)
        case ConnectionRefusedError() | OSError(errno=errno.ECONNREFUSED):
            return "The connection was refused."
        case ConnectionError() | ssl.SSLEOFError() | ssl.SSLZeroReturnError():
            return CLOSED
        case ssl.SSLError(reason=str() as reason) if reason in TLS_SENTENCES:
            return TLS_SENTENCES[reason]
        case ssl.SSLError(reason=str() as reason):
            return f"No TLS connection could be made: {reason.replace('_', ' ').lower()}."
        case OSError(errno=errno.ECONNRESET | errno.EPIPE | None):
            return CLOSED
        case OSError(errno=errno.EHOSTUNREACH | errno.ENETUNREACH | errno.EADDRNOTAVAIL | errno.EAFNOSUPPORT):
            return "The server cannot be reached."
    return f"The connection failed: {os.strerror(error.errno or 0)}."


def _seconds(seconds: float) -> str:
    return "1 second" if seconds == 1 else f"{seconds:g} seconds"


def _printable(text: str, longest: int) -> str:
    return "".join(character if character.isprintable() else "?" for character in text[:longest])

"""The only door to other people's servers: deadlines, size caps and address checks."""

from __future__ import annotations

import asyncio
import errno
import functools
import os
import re
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http.client import responses as phrases
from pathlib import Path

from yarl import URL

from app.lib.addresses import Network, check_address
from app.lib.conversation import LONGEST_BODY, Conversation, Deadline, NotHttp, Reply, TooLong, request
from app.lib.dialling import Dialler, NotPublic, Resolver, UnknownName, Unreachable
from app.lib.pool import Pool

__all__ = ["LONGEST_BODY", "Answer", "Outbound"]

CLOSED = "The server closed the connection without an answer."
NO_TLS = "The server does not speak TLS on this port."
OLD_TLS = "The server speaks no version of TLS from 1.2 on."
# Around what OpenSSL has to say, which does not always have a name: "[SSL: NAME] … (_ssl.c:1006)".
TLS_NOISE = re.compile(r"^\[[^]]*\] | \(_ssl\.c:\d+\)$")
TLS_SENTENCES = {
    "WRONG_VERSION_NUMBER": NO_TLS,
    "UNSUPPORTED_PROTOCOL": OLD_TLS,
    "TLSV1_ALERT_PROTOCOL_VERSION": OLD_TLS,
}


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


@dataclass(frozen=True, slots=True)
class _Target:
    """An address, read."""

    host: str
    port: int
    start: str


class _Exchange(Reply):
    """A request, and what comes of it."""

    __slots__ = ("answered", "began", "connecting", "conversation", "ended", "sent", "target")

    def __init__(self, target: _Target, sent: bytes, ended: Callable[[_Exchange], None]) -> None:
        super().__init__()
        loop = asyncio.get_running_loop()
        self.target, self.sent, self.ended = target, sent, ended
        self.began = loop.time()
        self.answered: asyncio.Future[Answer] = loop.create_future()
        self.connecting: asyncio.Task[None] | None = None
        self.conversation: Conversation | None = None

    def ask(self, conversation: Conversation) -> None:
        self.conversation = conversation
        conversation.ask(self.sent, self)

    def end(self, failure: Exception | None) -> None:
        super().end(failure)
        self.ended(self)

    def stop_at_deadline(self) -> None:
        if self.conversation is not None:
            self.conversation.stop_at_deadline()
            return
        if self.connecting is not None:
            self.connecting.cancel()
        self.end(Deadline())


class Outbound:
    """Sends requests to other people's servers. It belongs to the event loop of its first request.

    Nothing in `allowed_networks` is refused as private. The certificates in `ca_file` are trusted beside the system's.
    """

    def __init__(
        self,
        *,
        timeout_seconds: float,
        allowed_networks: Sequence[Network],
        ca_file: Path | None,
        resolver: Resolver | None = None,
    ) -> None:
        self._timeout_seconds = timeout_seconds
        self._read = functools.lru_cache(maxsize=4096)(functools.partial(_read, allowed=tuple(allowed_networks)))
        tls = ssl.create_default_context()
        tls.minimum_version = ssl.TLSVersion.TLSv1_2  # some systems' Pythons would allow older ones
        tls.set_alpn_protocols(["http/1.1"])
        tls.options |= ssl.OP_NO_RENEGOTIATION  # a server could have us shake hands over and over
        if ca_file is not None:
            tls.load_verify_locations(ca_file)
        self._dialler = Dialler(tls, tuple(allowed_networks), resolver)
        self._pool = Pool(self._dialler)
        self._under_way: dict[_Exchange, None] = {}  # in the order of their deadlines
        self._timer: asyncio.TimerHandle | None = None

    def post(self, address: str, body: bytes, headers: Mapping[str, str]) -> asyncio.Future[Answer]:
        """Send `body` to `address` once, following nothing, and tell what came of it within the timeout.

        Never fails for anything the other side does, and at once, with ValueError, for headers that cannot be sent.
        A 2xx status line that comes in time is a success, whatever happens to the rest of the answer.
        """
        target = self._read(address)
        if isinstance(target, str):
            refused: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
            refused.set_result(Answer(None, target, b"", 0))
            return refused
        exchange = _Exchange(target, request(target.start, headers, body), self._end)
        self._under_way[exchange] = None
        if self._timer is None:
            self._stop_late()
        conversation = self._pool.idle_one(target.host, target.port)
        if conversation is None:
            exchange.connecting = asyncio.get_running_loop().create_task(self._connect(exchange))
        else:
            exchange.ask(conversation)
        return exchange.answered

    async def close(self) -> None:
        """Drop every connection. Safe to repeat; requests under way end as failed."""
        self._pool.close()
        self._dialler.close()

    async def _connect(self, exchange: _Exchange) -> None:
        target = exchange.target
        try:
            exchange.ask(await self._pool.take(target.host, target.port, self._timeout_seconds))
        except Exception as error:
            exchange.end(error)

    def _stop_late(self) -> None:
        """Ends what has run out of time, and comes back when the next will have. One timer serves all requests."""
        loop, self._timer = asyncio.get_running_loop(), None
        while self._under_way:
            oldest = next(iter(self._under_way))
            deadline = oldest.began + self._timeout_seconds
            if deadline > loop.time():
                self._timer = loop.call_at(deadline, self._stop_late)
                return
            oldest.stop_at_deadline()

    def _end(self, exchange: _Exchange) -> None:
        del self._under_way[exchange]
        target, failure = exchange.target, exchange.failure
        if exchange.conversation is not None:
            self._pool.give_back(target.host, target.port, exchange.conversation)
        if exchange.answered.done():
            return  # nobody waits for it any more
        duration_ms = round((asyncio.get_running_loop().time() - exchange.began) * 1000)
        try:
            error = "" if failure is None else self._sentence(failure, target)
            exchange.answered.set_result(_answer(exchange, error, duration_ms))
        except Exception as error_of_ours:
            exchange.answered.set_exception(error_of_ours)

    def _sentence(self, failure: Exception, target: _Target) -> str:
        match failure:
            case Deadline():
                return f"No answer within {_seconds(self._timeout_seconds)}."
            case UnknownName():
                return f"The name {target.host} could not be resolved."
            case Unreachable(errors=errors):
                sentences = {_system_sentence(error) for error in errors}
                return sentences.pop() if len(sentences) == 1 else f"No address of {target.host} can be reached."
            case NotHttp():
                return "The answer is not valid HTTP."
            case TooLong():
                return "The answer is too long."
            case OSError():
                return _system_sentence(failure)
        raise failure  # the mistake is ours


def _read(address: str, allowed: Sequence[Network]) -> _Target | str:
    """What is dialled and sent for an address, or why it is refused."""
    refusal = check_address(address, allowed)
    if refusal is not None:
        return refusal
    url = URL(address)
    assert url.raw_host is not None
    assert url.port is not None
    start = f"POST {url.raw_path_qs} HTTP/1.1\r\nHost: {url.host_port_subcomponent}\r\n"
    return _Target(url.raw_host, url.port, start)


def _answer(reply: Reply, error: str, duration_ms: int) -> Answer:
    body = bytes(reply.body)
    if body and reply.compression and reply.compression.lower() != "identity":
        body = f"(The body is compressed with {_printable(reply.compression, 40)} and was not kept.)".encode()
    return Answer(reply.status, _verdict(reply, error), body, duration_ms)


def _verdict(reply: Reply, error: str) -> str | None:
    status = reply.status
    if status is None:
        return error
    if 200 <= status < 300:
        return None
    if 300 <= status < 400:
        # Without its query, which may repeat what we sent.
        target = f" to {_printable(reply.location.partition('?')[0], 500)}" if reply.location else ""
        return f"Redirects are not followed ({status}{target})."
    phrase = phrases.get(status)
    return f"The server answered {status} ({phrase})." if phrase else f"The server answered {status}."


def _system_sentence(error: OSError) -> str:
    match error:
        case NotPublic():
            return f"The address resolves to {error.args[0]}, which is not public."
        case ssl.SSLCertVerificationError():
            return f"The certificate is not valid: {error.verify_message.rstrip('.')}."
        case ConnectionRefusedError() | OSError(errno=errno.ECONNREFUSED):
            return "The connection was refused."
        case ConnectionError() | ssl.SSLEOFError() | ssl.SSLZeroReturnError():
            return CLOSED
        case ssl.SSLError(reason=str() as reason) if reason in TLS_SENTENCES:
            return TLS_SENTENCES[reason]
        case ssl.SSLError():
            return f"No TLS connection could be made: {TLS_NOISE.sub('', str(error))}."
        case OSError(errno=errno.ECONNRESET | errno.EPIPE | None):
            return CLOSED
        case OSError(errno=errno.EHOSTUNREACH | errno.ENETUNREACH | errno.EADDRNOTAVAIL | errno.EAFNOSUPPORT):
            return "The server cannot be reached."
    return f"The connection failed: {os.strerror(error.errno or 0)}."


def _seconds(seconds: float) -> str:
    return "1 second" if seconds == 1 else f"{seconds:g} seconds"


def _printable(text: str, longest: int) -> str:
    return "".join(character if character.isprintable() else "?" for character in text[:longest])

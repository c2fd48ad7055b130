"""Sends requests to third-party servers, with deadlines, size limits and address checks."""

from __future__ import annotations

import asyncio
import functools
import ssl
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import structlog

from app import metrics
from app.lib.addresses import Network
from app.lib.files import raise_open_limit
from app.lib.seldom import Seldom
from app.outbound.answers import Answer, Reason, answered, failed
from app.outbound.deadlines import MOST_QUEUED_SECONDS, Deadlines
from app.outbound.dialling import Dialler
from app.outbound.failure_reasons import judge
from app.outbound.http_connections import LONGEST_BODY, Connection, DeadlinePassed, Response
from app.outbound.names import Names, Resolver
from app.outbound.pool import Pool, QueueTimeout
from app.outbound.wire_format import Target, post_bytes, read_target, request_bytes

log = structlog.get_logger(__name__)

# The most open connections, including idle ones. Each takes 60 KiB of memory. Connections may also take at most half of
# the file descriptors, so that resolver threads, databases and logs have enough.
MOST_OPEN = 2000
LOG_SECONDS = 10  # the least time between two log lines about the same fault of our own


class Outbound:
    """Sends requests to third-party servers. Belongs to the event loop of its first request.

    Addresses in `allowed_networks` are never refused as private. `plain_addresses`: base addresses with http://; they
    are dialled without TLS, and only in these networks. `ca_file`: certificates trusted besides the system's.
    Increases the process's limit of open files if it is too low.
    """

    def __init__(
        self,
        *,
        timeout_seconds: float,
        allowed_networks: Sequence[Network],
        ca_file: Path | None,
        plain_addresses: Sequence[str] = (),
        resolver: Resolver | None = None,
    ) -> None:
        self._timeout_seconds = timeout_seconds
        allowed = tuple(allowed_networks)
        self._read = functools.lru_cache(maxsize=4096)(
            functools.partial(read_target, allowed=allowed, plain=tuple(plain_addresses))
        )
        tls = ssl.create_default_context()
        tls.minimum_version = ssl.TLSVersion.TLSv1_2  # some systems' Pythons would allow older versions
        tls.set_alpn_protocols(["http/1.1"])
        tls.options |= ssl.OP_NO_RENEGOTIATION  # otherwise, a server could make us repeat handshakes
        if ca_file is not None:
            tls.load_verify_locations(ca_file)
        most_open = min(MOST_OPEN, raise_open_limit(2 * MOST_OPEN) // 2)
        self._names = Names(resolver)
        # Separate pools, so that a request that needs TLS never gets a plain connection.
        self._pool = Pool(Dialler(tls, allowed, self._names), most_open)
        self._plain_pool = Pool(Dialler(None, allowed, self._names), most_open)
        self._deadlines = Deadlines()
        self._closed = False
        self._fault_logs: defaultdict[Reason, Seldom] = defaultdict(lambda: Seldom(LOG_SECONDS))

    def post(self, address: str, body: bytes, headers: Mapping[str, str]) -> asyncio.Future[Answer]:
        """POSTs `body` to `address` once. The timeout starts when the request leaves our queue.

        The future never fails: errors are in the Answer. A 2xx status line in time is a success, whatever happens to
        the rest of the response. Raises ValueError at once for headers that cannot be sent.
        """
        target = self._read(address)
        if isinstance(target, str):
            return _refused(target)
        sent = post_bytes(target, headers, body)
        return self._send(Exchange(target, sent, self._timeout_seconds, self._end))

    def request(
        self,
        method: str,
        address: str,
        body: bytes,
        headers: Mapping[str, str],
        *,
        most_bytes: int,
        timeout_seconds: float,
    ) -> asyncio.Future[Answer]:
        """Sends a request of any method once, like `post`. The Answer includes the response's headers.

        Keeps at most `most_bytes` of the response's body. Raises ValueError at once for a method or header that cannot
        be sent, and for headers that the caller may not set, like Host and Content-Length.
        """
        target = self._read(address)
        if isinstance(target, str):
            return _refused(target)
        exchange = Exchange(
            target,
            request_bytes(method, target, headers, body),
            timeout_seconds,
            self._end,
            most_bytes=most_bytes,
            headers=[],
            is_bodiless=method == "HEAD",
        )
        return self._send(exchange)

    async def close(self) -> None:
        """Closes every connection. Safe to repeat. Requests in progress fail as our fault."""
        self._closed = True
        for pool in (self._pool, self._plain_pool):
            pool.close()
        self._names.close()

    def _send(self, exchange: Exchange) -> asyncio.Future[Answer]:
        connection = self._pool_of(exchange).idle_one(exchange.target.host, exchange.target.port)
        if connection is None:
            exchange.is_queued = True
            self._deadlines.begin(exchange, MOST_QUEUED_SECONDS)
            exchange.connecting = asyncio.get_running_loop().create_task(self._connect(exchange))
        else:
            self._deadlines.begin(exchange, exchange.timeout)
            exchange.ask(connection)
        return exchange.answered

    async def _connect(self, exchange: Exchange) -> None:
        target = exchange.target
        try:
            left_queue = functools.partial(self._leave_queue, exchange)
            exchange.ask(await self._pool_of(exchange).take(target.host, target.port, left_queue))
        except Exception as error:
            exchange.end(error)

    def _pool_of(self, exchange: Exchange) -> Pool:
        return self._plain_pool if exchange.target.is_plain else self._pool

    def _leave_queue(self, exchange: Exchange) -> None:
        self._deadlines.end(exchange, MOST_QUEUED_SECONDS)
        exchange.is_queued = False
        exchange.began = asyncio.get_running_loop().time()
        self._deadlines.begin(exchange, exchange.timeout)

    def _end(self, exchange: Exchange) -> None:
        self._deadlines.end(exchange, MOST_QUEUED_SECONDS if exchange.is_queued else exchange.timeout)
        if exchange.connection is not None:
            self._pool_of(exchange).give_back(exchange.target.host, exchange.target.port, exchange.connection)
        if exchange.answered.done():
            return  # the caller has given up
        try:
            answer = self._answer(exchange)
        except Exception as mistake:
            self._count_our_fault(Reason.NOT_SENT, mistake)
            answer = failed(Reason.NOT_SENT, may_have_arrived=exchange.connection is not None)
        exchange.answered.set_result(answer)

    def _answer(self, exchange: Exchange) -> Answer:
        duration_ms = round((asyncio.get_running_loop().time() - exchange.began) * 1000)
        status = exchange.status
        if status is None:
            reason, fact = self._judge(exchange)
            return failed(reason, fact, duration_ms, may_have_arrived=exchange.connection is not None)
        return answered(
            status,
            exchange.kept_body(),
            duration_ms,
            target=exchange.redirect_target(),
            headers=tuple(exchange.headers or ()),
            is_whole=exchange.is_whole,
            retry_after=exchange.retry_after or "",
        )

    def _judge(self, exchange: Exchange) -> tuple[Reason, str]:
        host, port = exchange.target.host, exchange.target.port
        reason, fact = judge(exchange.failure, host, exchange.timeout)
        is_dialling = exchange.connection is None
        if self._closed:
            reason, fact = Reason.NOT_SENT, ""
        elif reason is Reason.LATE and is_dialling and self._names.is_resolver_silent(host, port):
            reason, fact = Reason.RESOLVER, host
        elif reason is Reason.DESCRIPTORS:
            self._pool_of(exchange).make_room()
        if reason.code == "ours":
            self._count_our_fault(reason, exchange.failure)
        return reason, fact

    def _count_our_fault(self, reason: Reason, failure: Exception | None) -> None:
        cause = reason.name.lower()
        metrics.OUR_FAULTS.labels(cause).inc()
        if self._fault_logs[reason].is_due():
            unexpected = failure if reason is Reason.NOT_SENT else None
            log.warning("outbound.our_fault", cause=cause, error=str(failure), exc_info=unexpected)


class Exchange(Response):
    """A request and its response. `ended` is called once with the exchange, and must set `answered`."""

    __slots__ = ("answered", "began", "connecting", "connection", "ended", "is_queued", "sent", "target", "timeout")

    def __init__(
        self,
        target: Target,
        sent: bytes,
        timeout: float,
        ended: Callable[[Exchange], None],
        *,
        most_bytes: int = LONGEST_BODY,
        headers: list[tuple[str, str]] | None = None,
        is_bodiless: bool = False,
    ) -> None:
        super().__init__(most_bytes, headers, is_bodiless)
        loop = asyncio.get_running_loop()
        self.target, self.sent, self.ended = target, sent, ended
        self.timeout = timeout
        self.is_queued = False
        self.began = loop.time()
        self.answered: asyncio.Future[Answer] = loop.create_future()
        self.connecting: asyncio.Task[None] | None = None
        self.connection: Connection | None = None

    def ask(self, connection: Connection) -> None:
        """Sends the request on this connection."""
        self.connection = connection
        connection.ask(self.sent, self)

    def end(self, failure: Exception | None) -> None:
        """Ends the response, then calls `ended` with the exchange."""
        super().end(failure)
        self.ended(self)

    def expire(self) -> None:
        """Ends the exchange at its deadline, with the part of the response received so far."""
        if self.connection is not None:
            self.connection.stop_at_deadline()
            return
        if self.connecting is not None:
            self.connecting.cancel()
        self.end(QueueTimeout() if self.is_queued else DeadlinePassed())


def _refused(refusal: str) -> asyncio.Future[Answer]:
    refused: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
    refused.set_result(failed(Reason.BAD_ADDRESS, refusal, may_have_arrived=False))
    return refused

"""Exchanges: a request, the part of its response received so far, and its deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from app.outbound.answers import Answer
from app.outbound.http_connections import LONGEST_BODY, Connection, DeadlinePassed, Response
from app.outbound.pool import QueueTimeout
from app.outbound.wire_format import Target


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

"""Connections to third-party servers: kept for later requests, and opened a few at a time."""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict, deque
from collections.abc import Callable

from app.outbound.dialling import Dialler
from app.outbound.http_connections import Connection

IDLE_SECONDS = 30
# This many connections to a server may be opening at once. A connection that opens within STEADY_TIMES the fastest time
# raises the number by one; a slower one lowers it. A handshake costs ten times as much as a request, and while the CPU
# is busy, other requests finish and free their connections.
OPENING = 8
STEADY_TIMES = 2
# If requests still wait after this time, one more connection is opened regardless, then three, nine and so on. So a
# server that is slow to connect does not delay requests for long.
PATIENCE_SECONDS = 0.25


class QueueTimeout(Exception):
    """A request waited too long for a connection, or for permission to open one."""


class Pool:
    """The connections of one event loop: at most `most_open`, including idle ones."""

    def __init__(self, dialler: Dialler, most_open: int) -> None:
        self._dialler = dialler
        self._most_open = most_open
        self._open: set[Connection] = set()  # including connections that are being opened
        self._idle: OrderedDict[Connection, _Server] = OrderedDict()  # longest idle first
        self._servers: dict[tuple[str, int], _Server] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False
        self.promised = 0  # connections that waiting requests may open, but have not begun to

    def idle_one(self, host: str, port: int) -> Connection | None:
        """Takes a connection that can be used at once; None if there is none. Return it with `give_back`."""
        server = self._servers.get((host, port))
        now = asyncio.get_running_loop().time()
        while server is not None and server.idle:
            connection, _ = server.idle.popitem()
            del self._idle[connection]
            if now - connection.idle_since < IDLE_SECONDS and connection.usable():
                return connection
            connection.abort()
        return None

    async def take(self, host: str, port: int, begun: Callable[[], None]) -> Connection:
        """Takes a new connection, or one that another request has finished with.

        Return it with `give_back`. Calls `begun` when the wait in the queue is over. Has no time limit of its own: the
        caller cancels it. Raises OSError like Dialler.dial.
        """
        server = self._server(host, port)
        connection = await server.turn()
        begun()
        return connection or await self._dial(server, host, port)

    def give_back(self, host: str, port: int, connection: Connection) -> None:
        """Takes back the connection of a request that has ended. Passes it on or keeps it if it is open.

        If it is closed, lets a waiting request open another.
        """
        server = self._server(host, port)
        if connection not in self._open:
            server.pass_on(None)
        elif not server.pass_on(connection):
            self.keep(server, connection)
        self._forget(server)

    def keep(self, server: _Server, connection: Connection) -> None:
        """Keeps the connection for a later request."""
        loop = asyncio.get_running_loop()
        connection.idle_since = loop.time()
        server.idle[connection] = None
        self._idle[connection] = server
        if self._timer is None:
            self._timer = loop.call_later(IDLE_SECONDS, self._drop_old)

    def has_room(self) -> bool:
        """Whether another connection may be opened. If needed, closes the longest idle one to make room."""
        if len(self._open) + self.promised >= self._most_open and self._idle:
            next(iter(self._idle)).abort()
        return len(self._open) + self.promised < self._most_open

    def make_room(self) -> None:
        """Closes half of the idle connections: the longest idle ones."""
        for connection in list(self._idle)[: (len(self._idle) + 1) // 2]:
            connection.abort()

    def close(self) -> None:
        """Closes every connection. Safe to repeat."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        for connection in list(self._open):
            connection.abort()
        for server in list(self._servers.values()):
            server.close()

    def _server(self, host: str, port: int) -> _Server:
        server = self._servers.get((host, port))
        if server is None:
            server = self._servers[host, port] = _Server(self, (host, port))
        return server

    def _forget(self, server: _Server) -> None:
        if not server.is_needed:
            self._servers.pop(server.key, None)

    async def _dial(self, server: _Server, host: str, port: int) -> Connection:
        connection = Connection(self._lose)
        loop = asyncio.get_running_loop()
        began = loop.time()
        self._open.add(connection)
        try:
            if self._closed:
                raise ConnectionAbortedError
            await self._dialler.dial(host, port, connection)
            server.has_opened(loop.time() - began)
        except BaseException:
            self._open.discard(connection)
            raise
        finally:
            server.end_opening()
            self._forget(server)
        if self._closed:
            connection.abort()
        return connection

    def _lose(self, connection: Connection) -> None:
        self._open.discard(connection)
        server = self._idle.pop(connection, None)
        if server is not None:
            del server.idle[connection]
            self._forget(server)

    def _drop_old(self) -> None:
        loop, self._timer = asyncio.get_running_loop(), None
        while self._idle:
            oldest = next(iter(self._idle))
            until = oldest.idle_since + IDLE_SECONDS
            if until > loop.time():
                self._timer = loop.call_at(until, self._drop_old)
                break
            oldest.abort()


class _Server:
    """A server's idle connections, most recently used last, and the requests that wait for one."""

    def __init__(self, pool: Pool, key: tuple[str, int]) -> None:
        self.key = key
        self.idle: dict[Connection, None] = {}
        self._pool = pool
        self._opening = 0
        self._most_opening = OPENING
        self._quickest = math.inf
        self._pushed = 1
        self._waiting: deque[asyncio.Future[Connection | None]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_needed(self) -> bool:
        return bool(self.idle or self._opening or self._waiting)

    async def turn(self) -> Connection | None:
        """Waits for a connection that another request has finished with.

        None means permission to open one: call `end_opening` afterwards.
        """
        if not self._waiting and self._opening < self._most_opening and self._pool.has_room():
            self._opening += 1
            return None
        turn: asyncio.Future[Connection | None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        if self._timer is None:
            self._pushed = 1
            self._keep_time()
        try:
            connection = await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._take_back(turn.result())
            raise
        if connection is None:
            self._pool.promised -= 1
        elif not connection.usable():
            connection.abort()
            connection = None
            self._opening += 1
        return connection

    def has_opened(self, seconds: float) -> None:
        """Adjusts how many connections may be opening at once to the time that one took."""
        self._quickest = min(self._quickest, seconds)
        steady = seconds <= STEADY_TIMES * self._quickest
        self._most_opening = max(1, self._most_opening + (1 if steady else -1))

    def end_opening(self) -> None:
        """Lets others open connections. Call it when a connection has been opened or has failed to open."""
        self._opening -= 1
        self._open_more()

    def pass_on(self, connection: Connection | None) -> bool:
        """Gives the connection, or permission to open one, to the request that has waited longest.

        Returns False if none is waiting.
        """
        if not self._has_waiting():
            return False
        if connection is None:
            self._opening += 1
            self._pool.promised += 1
        self._waiting.popleft().set_result(connection)
        return True

    def close(self) -> None:
        """Lets all waiting requests continue: they fail when they dial, because the pool is closed."""
        if self._timer is not None:
            self._timer.cancel()
        while self.pass_on(None):
            pass

    def _has_waiting(self) -> bool:
        while self._waiting and self._waiting[0].done():  # the request gave up
            self._waiting.popleft()
        return bool(self._waiting)

    def _open_more(self) -> None:
        while self._has_waiting() and self._opening < self._most_opening and self._pool.has_room():
            self.pass_on(None)

    def _keep_time(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(PATIENCE_SECONDS, self._push)

    def _push(self) -> None:
        for _ in range(self._pushed):
            if self._has_waiting() and self._pool.has_room():
                self.pass_on(None)
        self._pushed *= 3
        self._timer = None
        if self._has_waiting():
            self._keep_time()

    def _take_back(self, connection: Connection | None) -> None:
        """Reverts `pass_on` for a request that has given up."""
        if connection is None:
            self._pool.promised -= 1
            self.end_opening()
        elif not self.pass_on(connection):
            self._pool.keep(self, connection)

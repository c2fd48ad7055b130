"""Connections to other people's servers: kept for later requests, and opened a few at a time."""

from __future__ import annotations

import asyncio
import statistics
from collections import deque

from app.lib.conversation import Conversation
from app.lib.dialling import Dialler

IDLE_SECONDS = 30
SWEEP_SECONDS = 5
MOST_OPEN = 2000  # with more, half of those that are idle are dropped: each costs memory and a file descriptor

# So many are opened to a server at once, and then one each time: a handshake costs ten times what a request does, and
# while it goes on another request may be done with its connection.
OPENED_AT_ONCE, OPENING_SECONDS = 8, 0.004


class Pool:
    """The connections of one event loop. What it gives is to be given back."""

    def __init__(self, dialler: Dialler) -> None:
        self._dialler = dialler
        self._open: set[Conversation] = set()
        self._servers: dict[tuple[str, int], _Server] = {}
        self._sweep_timer: asyncio.TimerHandle | None = None
        self._closed = False

    def idle_one(self, host: str, port: int) -> Conversation | None:
        """One that can be used at once."""
        return self._server(host, port).idle_one(asyncio.get_running_loop().time())

    async def take(self, host: str, port: int, patience: float) -> Conversation:
        """One that is opened, or that another request is done with meanwhile.

        The caller cancels this after `patience` seconds at most. Raises OSError, as Dialler.dial does.
        """
        server = self._server(host, port)
        conversation = await server.turn() if server.has_enough_opening() else None
        return conversation or await self._dial(server, host, port, patience)

    def give_back(self, host: str, port: int, conversation: Conversation) -> None:
        """Its request has ended, one way or the other."""
        server = self._server(host, port)
        if conversation not in self._open:
            server.pass_on(None)
            return
        server.keep(conversation, asyncio.get_running_loop().time())
        if len(self._open) > MOST_OPEN:
            self._drop(statistics.median_low(each.idle_since for some in self._servers.values() for each in some.idle))

    def close(self) -> None:
        """Drops every connection. Safe to repeat."""
        self._closed = True
        if self._sweep_timer is not None:
            self._sweep_timer.cancel()
        for conversation in list(self._open):
            conversation.abort()
        for server in self._servers.values():
            server.close()

    def _server(self, host: str, port: int) -> _Server:
        server = self._servers.get((host, port))
        if server is None:
            server = self._servers[host, port] = _Server()
            if self._sweep_timer is None:
                loop = asyncio.get_running_loop()
                self._sweep_timer = loop.call_later(SWEEP_SECONDS, self._sweep, loop)
        return server

    async def _dial(self, server: _Server, host: str, port: int, patience: float) -> Conversation:
        if self._closed:
            raise ConnectionAbortedError
        conversation = Conversation(self._open.discard)
        self._open.add(conversation)
        server.opening += 1
        try:
            await self._dialler.dial(host, port, conversation, patience)
        except BaseException:
            self._open.discard(conversation)
            server.pass_on(None)
            raise
        finally:
            server.opening -= 1
        if self._closed:
            conversation.abort()
        return conversation

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        self._sweep_timer = None
        self._drop(loop.time() - IDLE_SECONDS)
        if self._servers:
            self._sweep_timer = loop.call_later(SWEEP_SECONDS, self._sweep, loop)

    def _drop(self, until: float) -> None:
        """Those that nobody has used since then."""
        for server in self._servers.values():
            for conversation in server.idle:
                if conversation.idle_since <= until:
                    conversation.abort()
            server.idle = [each for each in server.idle if each in self._open]
        self._servers = {name: server for name, server in self._servers.items() if server.idle or server.is_awaited}


class _Server:
    """The connections to a server that are idle, the last one used last, and the requests that wait for one."""

    def __init__(self) -> None:
        self.idle: list[Conversation] = []
        self.opening = 0
        self._waiting: deque[asyncio.Future[Conversation | None]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_awaited(self) -> bool:
        return bool(self.opening or self._waiting)

    def has_enough_opening(self) -> bool:
        return self.opening >= OPENED_AT_ONCE or bool(self._waiting)

    def idle_one(self, now: float) -> Conversation | None:
        while self.idle:
            conversation = self.idle.pop()
            if now - conversation.idle_since < IDLE_SECONDS and conversation.usable():
                return conversation
            conversation.abort()
        return None

    async def turn(self) -> Conversation | None:
        """Waits for a connection that another request is done with; None: it is time to open one more."""
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[Conversation | None] = loop.create_future()
        self._waiting.append(turn)
        if self._timer is None:
            self._timer = loop.call_later(OPENING_SECONDS, self._let_one_open, loop)
        try:
            conversation = await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._take_back(turn.result())
            raise
        if conversation is None or conversation.usable():
            return conversation
        conversation.abort()
        return None

    def keep(self, conversation: Conversation, now: float) -> None:
        conversation.idle_since = now
        if not self.pass_on(conversation):
            self.idle.append(conversation)

    def pass_on(self, conversation: Conversation | None) -> bool:
        """Gives the connection, or the turn to open one, to the request that has waited longest, if there is one."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(conversation)
                return True
        return False

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        while self.pass_on(None):
            pass

    def _let_one_open(self, loop: asyncio.AbstractEventLoop) -> None:
        self.pass_on(None)
        self._timer = loop.call_later(OPENING_SECONDS, self._let_one_open, loop) if self._waiting else None

    def _take_back(self, conversation: Conversation | None) -> None:
        """What was for a request that has given up."""
        if not self.pass_on(conversation) and conversation is not None:
            self.idle.append(conversation)

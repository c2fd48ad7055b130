"""Connections to other people's servers: kept for later requests, and opened a few at a time."""

from __future__ import annotations

import asyncio
import math
import statistics
from collections import deque

from app.lib.conversation import Conversation
from app.lib.dialling import Dialler

IDLE_SECONDS = 30
SWEEP_SECONDS = 5
MOST_OPEN = 2000  # with more, half of those that are idle are dropped: each costs memory and a file descriptor

# So many may be opening to a server at once: more while a handshake takes no longer than it must, fewer when it takes
# more than twice as long. It costs ten times what a request does, and meanwhile others are done with their connections.
OPENING = 8
STEADY_TIMES, STEADY_SECONDS = 2, 0.005
PATIENCE_SECONDS = 0.25  # one of those that wait opens one all the same, should handshakes hang


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
        return await server.turn() or await self._dial(server, host, port, patience)

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
        loop = asyncio.get_running_loop()
        began = loop.time()
        conversation = Conversation(self._open.discard)
        self._open.add(conversation)
        try:
            if self._closed:
                raise ConnectionAbortedError
            await self._dialler.dial(host, port, conversation, patience)
        except BaseException:
            self._open.discard(conversation)
            raise
        else:
            server.has_opened(loop.time() - began)
        finally:
            server.end_opening()
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
        self._opening = 0
        self._most_opening = OPENING
        self._quickest = math.inf
        self._waiting: deque[asyncio.Future[Conversation | None]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_awaited(self) -> bool:
        return bool(self._opening or self._waiting)

    def idle_one(self, now: float) -> Conversation | None:
        while self.idle:
            conversation = self.idle.pop()
            if now - conversation.idle_since < IDLE_SECONDS and conversation.usable():
                return conversation
            conversation.abort()
        return None

    async def turn(self) -> Conversation | None:
        """Waits for a connection that another request is done with; None: open one, and tell when that has ended."""
        if not self._waiting and self._opening < self._most_opening:
            self._opening += 1
            return None
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[Conversation | None] = loop.create_future()
        self._waiting.append(turn)
        if self._timer is None:
            self._timer = loop.call_later(PATIENCE_SECONDS, self._let_one_open, loop)
        try:
            conversation = await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._take_back(turn.result())
            raise
        if conversation is not None and not conversation.usable():
            conversation.abort()
            conversation = None
            self._opening += 1
        return conversation

    def has_opened(self, seconds: float) -> None:
        self._quickest = min(self._quickest, seconds)
        steady = seconds <= STEADY_TIMES * self._quickest + STEADY_SECONDS
        self._most_opening = max(1, self._most_opening + (1 if steady else -1))

    def end_opening(self) -> None:
        self._opening -= 1
        while self._opening < self._most_opening and self.pass_on(None):
            pass

    def keep(self, conversation: Conversation, now: float) -> None:
        conversation.idle_since = now
        if not self.pass_on(conversation):
            self.idle.append(conversation)

    def pass_on(self, conversation: Conversation | None) -> bool:
        """Gives the connection, or the turn to open one, to the request that has waited longest; False: none waits."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                self._opening += conversation is None
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
        self._timer = loop.call_later(PATIENCE_SECONDS, self._let_one_open, loop) if self._waiting else None

    def _take_back(self, conversation: Conversation | None) -> None:
        """What was for a request that has given up."""
        if conversation is None:
            self.end_opening()
        elif not self.pass_on(conversation):
            self.idle.append(conversation)

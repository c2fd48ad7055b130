"""What the played servers of all providers share: HTTPS on loopback, what arrived, and troubles on command."""

from __future__ import annotations

import asyncio
import atexit
import json
import ssl
import threading
import time
import urllib.error
import urllib.request
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from aiohttp import web

from tests.stack.certificates import Certificates
from tests.stack.ports import free_port

# More than any provider takes, so that it is the played server that refuses.
MOST_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Reply:
    """A response: JSON if `body` is no bytes."""

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)


class Trouble(Enum):
    """What happens instead of a reply."""

    HANG = "the request is taken, and nothing is said until the server stops"
    CUT_AFTER = "the request is taken, and the connection ends without a reply"
    CUT_UNTAKEN = "the request is read but not taken, and the connection ends, which looks like CUT_AFTER"


Happening = Reply | Trouble


@dataclass(frozen=True, slots=True)
class Call:
    """One request as it arrived. `is_taken`: the server did what it asks for."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    at: float
    is_taken: bool

    @property
    def json(self) -> Any:
        """The body, read as JSON."""
        return json.loads(self.body)


class Provider(ABC):
    """Serves `reply` at https://127.0.0.1:<port>/ in a thread of its own.

    `calls` lists what has arrived, in order, unless `keeps` is False. `happens` makes the next requests go wrong,
    `always` all of them. `observe`, if set, sees each call before it is answered.
    """

    def __init__(self, directory: Path, port: int | None = None) -> None:
        self.certificates = Certificates(directory)
        self.port = port or free_port()
        self.calls: list[Call] = []
        self.keeps = True
        self.observe: Callable[[Call], None] | None = None
        self._next: dict[str, deque[Happening]] = {}
        self._always: dict[str, Happening] = {}
        self._is_cutting = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    @abstractmethod
    def reply(self, call: Call) -> Reply:
        """Does what the call asks for, and returns what the provider says. Runs in the server's thread."""

    @property
    def url(self) -> str:
        """The server's address, without a slash at its end."""
        return f"https://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Listen. Raises OSError if the port is taken."""
        listening: Future[None] = Future()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(listening)), daemon=True)
        self._thread.start()
        listening.result()
        atexit.register(self.stop)

    def stop(self) -> None:
        """Cut all connections and refuse new ones. It can be started again on the same port. Safe to repeat."""
        if self._loop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._stopping.set)
            self._thread.join()
            self._loop = self._thread = None

    def happens(self, *happenings: Happening, path: str = "", times: int = 1) -> None:
        """The next requests whose path ends with `path` meet these, one each; then all is well again."""
        self._next.setdefault(path, deque()).extend(happenings * times)

    def always(self, happening: Happening | None, path: str = "") -> None:
        """Every request whose path ends with `path` meets this, until it is None."""
        if happening is None:
            self._always.pop(path, None)
        else:
            self._always[path] = happening

    def hangs(self, path: str) -> bool:
        """Whether the next request to this path is never answered."""
        return self._coming(path) is Trouble.HANG

    def cut_before(self, is_cutting: bool) -> None:
        """While true, connections end in the TLS handshake, before a byte of a request; those that are open end now."""
        self._is_cutting = is_cutting
        if is_cutting and self._loop is not None:
            asyncio.run_coroutine_threadsafe(self._cut(), self._loop).result()

    def called(self, path: str = "", *, is_taken: bool = True) -> Sequence[Call]:
        """What has arrived so far at paths that end with `path`, by default only what was taken."""
        return [call for call in list(self.calls) if call.path.endswith(path) and (call.is_taken or not is_taken)]

    def push(self, address: str, body: bytes, headers: Mapping[str, str], method: str = "POST") -> tuple[int, bytes]:
        """Calls a webhook as the provider does; returns the status and the body of the response."""
        request = urllib.request.Request(address, body or None, dict(headers), method=method)
        trusting = ssl.create_default_context(cafile=str(self.certificates.ca_file))
        try:
            with urllib.request.urlopen(request, timeout=20, context=trusting) as response:
                return response.status, response.read()
        except urllib.error.HTTPError as refusal:
            return refusal.code, refusal.read()

    async def _serve(self, listening: Future[None]) -> None:
        self._stopping = asyncio.Event()
        self._server = web.Server(self._handle, access_log=None)
        runner = web.ServerRunner(self._server, shutdown_timeout=0.1)
        context = self.certificates.server_context()
        context.sni_callback = self._refuse
        try:
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", self.port, ssl_context=context, reuse_address=True).start()
            self._loop = asyncio.get_running_loop()
        except OSError as error:
            listening.set_exception(error)
        else:
            listening.set_result(None)
            await self._stopping.wait()
            await self._cut()  # hanging requests would hold it up
        await runner.cleanup()

    def _refuse(self, *_: object) -> int | None:
        return int(ssl.ALERT_DESCRIPTION_INTERNAL_ERROR) if self._is_cutting else None

    async def _cut(self) -> None:
        for connection in self._server.connections:
            if connection.transport is not None:
                connection.transport.abort()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        body = await request.clone(client_max_size=MOST_BYTES).read()
        happening = self._happening(request.path)
        is_taken = happening in (None, Trouble.HANG, Trouble.CUT_AFTER)
        call = Call(request.method, request.path, request.query, request.headers, body, time.time(), is_taken)
        if self.keeps:
            self.calls.append(call)
        if self.observe is not None:
            self.observe(call)
        reply = self.reply(call) if is_taken else happening
        if happening is Trouble.HANG:
            await asyncio.Event().wait()
        if isinstance(happening, Trouble) and request.transport is not None:
            request.transport.abort()
        return _response(reply if isinstance(reply, Reply) else Reply())

    def _happening(self, path: str) -> Happening | None:
        waiting = self._waiting(path)
        return waiting.popleft() if waiting else self._coming(path)

    def _coming(self, path: str) -> Happening | None:
        if waiting := self._waiting(path):
            return waiting[0]
        return next((happening for end, happening in self._always.items() if path.endswith(end)), None)

    def _waiting(self, path: str) -> deque[Happening] | None:
        return next((waiting for end, waiting in self._next.items() if waiting and path.endswith(end)), None)


def _response(reply: Reply) -> web.Response:
    if isinstance(reply.body, bytes):
        return web.Response(status=reply.status, body=reply.body, headers=reply.headers)
    body = b"" if reply.body is None else json.dumps(reply.body).encode()
    return web.Response(status=reply.status, body=body, headers={"Content-Type": "application/json", **reply.headers})

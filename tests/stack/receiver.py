"""A local HTTPS server that receives webhooks."""

import asyncio
import atexit
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from aiohttp import web

from tests.stack.certificates import Certificates
from tests.stack.ports import free_port

PATH = "/hooks"


@dataclass(frozen=True)
class Answer:
    """The response to a delivery: a status, after a delay and after `released` is set; or a closed connection."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_seconds: float = 0.0
    close: bool = False
    released: threading.Event | None = None


@dataclass(frozen=True, slots=True)
class Received:
    """One POST as it arrived."""

    path: str
    headers: Mapping[str, str]
    body: bytes
    at: float

    @property
    def delivery_id(self) -> str:
        """The value of X-Service-Delivery; empty if it is missing."""
        return self.headers.get("X-Service-Delivery", "")

    @property
    def signature(self) -> str:
        """The value of X-Service-Signature; empty if it is missing."""
        return self.headers.get("X-Service-Signature", "")


Behaviour = Callable[[str, bytes], Answer | int]


class Receiver:
    """Answers every POST at https://<host>:<port>/, in a thread of its own.

    `answers` maps a path to an Answer or a status, by default 200. If `behaviour(path, body)` is set, it decides
    instead. Both may change at any time. `counts` counts requests by path. `received` lists them, unless `keeps` is
    False. As a context manager it listens inside the block.
    """

    def __init__(
        self,
        directory: Path,
        port: int | None = None,
        on_receive: Callable[[Received], None] | None = None,
        host: str = "127.0.0.1",
    ) -> None:
        self.host = host
        self.certificates = Certificates(directory, host)
        self.port = port or free_port()
        self.answers: dict[str, Answer | int] = {}
        self.behaviour: Behaviour | None = None
        self.keeps = True
        self.received: list[Received] = []
        self.counts: Counter[str] = Counter()
        self._on_receive = on_receive
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._failure: OSError | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def url(self, path: str = PATH) -> str:
        """The address of a path."""
        return f"https://{self.host}:{self.port}{path}"

    def start(self) -> None:
        """Listen. Raises OSError if the port is taken."""
        listening = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(listening)), daemon=True)
        self._failure = None
        self._thread.start()
        listening.wait()
        if self._failure is not None:
            raise self._failure
        atexit.register(self.stop)

    def stop(self) -> None:
        """Cut all connections and refuse new ones. It can be started again on the same port. Safe to repeat."""
        if self._loop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._stopping.set)
            self._thread.join()
            self._loop = self._thread = None

    def clear(self) -> None:
        """Forget the requests received, but not the answers."""
        self.received.clear()
        self.counts.clear()

    def wait_for(self, condition: Callable[["Receiver"], bool], timeout_seconds: float = 20) -> bool:
        """Whether the condition, such as `lambda receiver: len(receiver.received) >= 3`, became true in time."""
        deadline = time.monotonic() + timeout_seconds
        while not condition(self):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.01)
        return True

    async def _serve(self, listening: threading.Event) -> None:
        self._stopping = asyncio.Event()
        runner = web.ServerRunner(web.Server(self._answer, access_log=None), shutdown_timeout=0.1)
        try:
            await runner.setup()
            site = web.TCPSite(
                runner, self.host, self.port, ssl_context=self.certificates.server_context(), reuse_address=True
            )
            await site.start()
            self._loop = asyncio.get_running_loop()
        except OSError as error:
            self._failure = error
        listening.set()
        if self._failure is None:
            await self._stopping.wait()
        await runner.cleanup()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        body = await request.read()
        path = request.path
        self._note(Received(path, request.headers, body, time.time()))
        answer = self.behaviour(path, body) if self.behaviour else self.answers.get(path, 200)
        if isinstance(answer, int):
            return web.Response(status=answer)
        if answer.delay_seconds:
            await asyncio.sleep(answer.delay_seconds)
        while answer.released is not None and not answer.released.is_set():
            await asyncio.sleep(0.01)
        if answer.close and request.transport is not None:
            request.transport.abort()
        return web.Response(status=answer.status, body=answer.body, headers=answer.headers)

    def _note(self, received: Received) -> None:
        self.counts[received.path] += 1
        if self.keeps:
            self.received.append(received)
        if self._on_receive is not None:
            self._on_receive(received)

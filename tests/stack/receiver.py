"""A local HTTPS receiver of webhooks: a real server for real deliveries."""

import argparse
import asyncio
import atexit
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import web

from tests.stack.certificates import Certificates
from tests.stack.ports import free_port
from tests.stack.reports import PATH, Report

ENDING = {signal.SIGINT, signal.SIGTERM}


@dataclass(frozen=True)
class Answer:
    """What a delivery gets: this status after a delay and `released`, or the connection closed in its face."""

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
        return self.headers.get("X-Service-Delivery", "")

    @property
    def signature(self) -> str:
        return self.headers.get("X-Service-Signature", "")


Behaviour = Callable[[str, bytes], Answer | int]


class Receiver:
    """Answers every POST at https://127.0.0.1:<port>/, in a thread of its own.

    `answers` holds what a path gets, an Answer or a status (200 where it holds nothing); `behaviour(path, body)`, where
    set, decides instead. Both may change at any time. `counts` counts by path; `received` has what arrived, unless
    `keeps` is False.
    """

    def __init__(
        self, directory: Path, port: int | None = None, on_receive: Callable[[Received], None] | None = None
    ) -> None:
        self.certificates = Certificates(directory)
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

    def url(self, path: str = PATH) -> str:
        return f"https://127.0.0.1:{self.port}{path}"

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
        """Cut every connection and refuse new ones, until started again on the same port. Safe to repeat."""
        if self._loop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._stopping.set)
            self._thread.join()
            self._loop = self._thread = None

    def clear(self) -> None:
        """Forget what arrived, not how to answer."""
        self.received.clear()
        self.counts.clear()

    def wait_for(self, condition: Callable[["Receiver"], bool], timeout_seconds: float = 20) -> bool:
        """Whether the condition became true in time, such as `lambda receiver: len(receiver.received) >= 3`."""
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
                runner, "127.0.0.1", self.port, ssl_context=self.certificates.server_context(), reuse_address=True
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


def main() -> None:
    """Print a line for each delivery until told to stop."""
    parser = argparse.ArgumentParser(prog="python -m tests.stack.receiver")
    parser.add_argument("--directory", type=Path, required=True, help="where the certificate is kept")
    parser.add_argument("--port", type=int, default=8443)
    parser.add_argument("--secret-file", type=Path, required=True, help="the endpoint's secret, whsec_…")
    arguments = parser.parse_args()
    # Blocked before there are threads, so that no thread is ended by what is waited for below.
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    report = Report(arguments.secret_file)
    receiver = Receiver(
        arguments.directory, arguments.port, on_receive=lambda received: print(report.line(received), flush=True)
    )
    receiver.keeps = False
    receiver.start()
    print(f"Receiving at {receiver.url()}; its authority is {receiver.certificates.ca_file}", flush=True)
    signal.sigwait(ENDING)
    receiver.stop()


if __name__ == "__main__":
    main()

"""The threaded worker of `web`: a slow client holds none of its threads, or one of the few for large bodies.

A thread reads what has arrived of a request, and goes on with it only if that is all of it. Otherwise the connection
waits without a thread until more arrives. Large bodies, and those whose end is not known, are read in a thread.
"""

from __future__ import annotations

import io
import resource
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from enum import Enum, auto
from typing import Any

from gunicorn.http.unreader import SocketUnreader
from gunicorn.workers.gthread import _DEFER

from app.config import settings
from app.lib.addresses import network_of
from app.unreadable import RefusingWorker

# Longer than any request takes: one that takes longer is waiting for its client.
PATIENCE_SECONDS = 70
# A client that has sent nothing for so long sends nothing more, or means harm.
STALL_SECONDS = 10
# What one connection may keep in memory. Larger heads are left to the parser, which refuses most of them.
_HEAD_BYTES, _BODY_BYTES, _PART_BYTES = 32 * 1024, 64 * 1024, 16 * 1024
_READS = object()  # what `handle` returns for a request that needs a thread to read it


class Arrived(Enum):
    """How much of a request has arrived."""

    PART = auto()
    ALL = auto()
    LARGE = auto()  # part, and the rest is for a thread to read


def arrived(data: bytes) -> tuple[Arrived, int]:
    """Judges the beginning of a connection's bytes; and how many are missing, -1 if that is not known."""
    end = data.find(b"\r\n\r\n")
    if end < 0:
        # A bare line end never ends a head: gunicorn refuses it at once.
        is_hopeless = len(data) > _HEAD_BYTES or data.count(b"\n") != data.count(b"\r\n")
        return (Arrived.LARGE if is_hopeless else Arrived.PART), -1
    head = data[: end + 2].lower()
    if b"\r\ntransfer-encoding" in head:
        return Arrived.LARGE, -1
    _, name, rest = head.partition(b"\r\ncontent-length:")
    try:
        length = int(rest.partition(b"\r\n")[0]) if name else 0
    except ValueError:
        return Arrived.ALL, 0  # gunicorn refuses the request
    missing = end + 4 + length - len(data)
    if missing <= 0:
        return Arrived.ALL, 0
    # Who expects 100 sends nothing before it.
    is_for_thread = length > _BODY_BYTES or b"\r\nexpect:" in head
    return (Arrived.LARGE if is_for_thread else Arrived.PART), missing


class Unreader(SocketUnreader):  # type: ignore[misc]
    """The bytes of a connection, and how fast those of the current request arrive."""

    def __init__(self, sock: socket.socket, address: str, leave: Callable[[], None]) -> None:
        super().__init__(sock)
        self.address = address
        self.has_place = False  # may wait in a thread
        self.begun = time.monotonic()
        self.is_waiting = False
        self._leave = leave
        self._received = self._missing = 0
        self._waited = 0.0

    def renew(self) -> None:
        """The next request begins, with what has arrived of it already."""
        self.begun, self._received, self._waited = time.monotonic(), self.buf.getbuffer().nbytes, 0.0

    def gather(self) -> Arrived:
        """Reads what has arrived, without waiting. At the connection's end that is all."""
        data = self.buf.getvalue()
        while True:
            state, self._missing = arrived(data) if data else (Arrived.PART, 0)
            if state is not Arrived.PART:
                break
            try:
                part = self.sock.recv(_PART_BYTES, socket.MSG_DONTWAIT)
            except BlockingIOError:
                break
            if not part:
                state = Arrived.ALL
                break
            if not data:
                self.begun = time.monotonic()
            self._received += len(part)
            data += part
        self.buf = io.BytesIO()
        self.buf.write(data)
        return state

    def take_place(self) -> None:
        """A thread will read the rest."""
        self.has_place, self._received = True, 0

    def chunk(self, size_hint: int | None = None) -> bytes:
        """Waits for more of the request, in a thread."""
        self.begun, self.is_waiting = time.monotonic() - self._waited, True
        try:
            data: bytes = super().chunk(size_hint)
        finally:
            self._waited, self.is_waiting = time.monotonic() - self.begun, False
        self._received += len(data)
        if self.has_place and 0 <= self._missing <= self._received:
            self._leave()
        return data

    def is_late(self, now: float, least_per_second: int) -> bool:
        """Whether the client sends slower than that, but for a stall. One that has sent nothing has time."""
        has_begun = self.is_waiting or self._received > 0
        return has_begun and now - self.begun > STALL_SECONDS + self._received / least_per_second


class PatientWorker(RefusingWorker):
    """gunicorn's threaded worker, with bounds on what slow clients can hold of it.

    Connections are kept track of in the main thread. `handle` runs in one of the others.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._begun: dict[Any, float] = {}  # connections in a thread, oldest first
        self._waiting: list[Any] = []  # for a place in which to read a large body, oldest first
        self._readers: dict[Any, str] = {}  # the connections that have such a place, and their addresses
        self._next_look = 0.0

    def init_process(self) -> None:
        """Begins to serve, in a process of its own."""
        # Creates metrics, whose files belong to the process that imports them.
        from app import bounds

        self._bounds = bounds
        # Behind a proxy that is named, one address may be everybody's.
        self._by_address = settings().trusted_proxies == 0
        self.worker_connections = bounds.WEB_CONNECTIONS.most
        self.max_keepalived = self.worker_connections - self.cfg.threads
        self._most_readers = min(bounds.WEB_BODIES.most, self.cfg.threads // 2)
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # accepting without a descriptor ends a worker
        super().init_process()

    def accept(self, listener: Any) -> None:
        """Accepts a connection. If that is the last that may be, the one that was idle for longest is closed."""
        super().accept(listener)
        if self.nr_conns >= self.worker_connections and self.keepalived_conns:
            self._bounds.WEB_CONNECTIONS.reached()
            self.keepalived_conns[0].timeout = 0.0
            self.murder_keepalived()

    def handle(self, conn: Any) -> Any:
        """Handles one request, if it has arrived or has a place. Returns whether the connection is kept."""
        unreader = self._unreader(conn)
        if self.alive and not unreader.has_place:
            state = unreader.gather()
            if state is not Arrived.ALL:
                return _DEFER if state is Arrived.PART else _READS
        self._begun[conn] = time.monotonic()
        try:
            is_kept = super().handle(conn)
            if is_kept:
                unreader.renew()
            else:
                # Waits up to two seconds for the client to close. gunicorn would do so in the main loop, blocking all.
                conn.close(graceful=True)
                conn.close = lambda graceful=False: None
            return is_kept
        finally:
            del self._begun[conn]

    def finish_request(self, conn: Any, fs: Any) -> None:
        """What becomes of a connection after `handle`."""
        self._leave(conn)
        if fs.cancelled() or fs.exception() or fs.result() is not _READS:
            super().finish_request(conn, fs)
            if conn in self.pending_conns:
                self._keep_few_unfinished(conn)
            return
        self._waiting.append(conn)
        self._give_places()
        if conn not in self._readers:
            is_full = len(self._readers) >= self._most_readers
            (self._bounds.WEB_BODIES if is_full else self._bounds.WEB_BODIES_PER_ADDRESS).reached()
            self._keep_few_unfinished(conn)

    def murder_pending(self) -> None:
        """Hangs up on clients that are too slow. gunicorn calls it at least once a second."""
        super().murder_pending()
        now = time.monotonic()
        if now < self._next_look:
            return
        self._next_look = now + 1
        least = self._bounds.WEB_PROGRESS
        for conn in [*self.pending_conns]:
            if self._unreader(conn).is_late(now, least.most):
                least.reached()
                self._drop(conn)
        for conn in [each for each in self._waiting if now - self._unreader(each).begun > PATIENCE_SECONDS]:
            self._drop(conn)
        for conn, begun in [*self._begun.items()]:
            is_late = conn.parser.unreader.is_waiting and self._unreader(conn).is_late(now, least.most)
            if is_late:
                least.reached()
            if is_late or now - begun > PATIENCE_SECONDS:
                with suppress(OSError):
                    conn.sock.shutdown(socket.SHUT_RDWR)  # wakes the thread

    def _unreader(self, conn: Any) -> Unreader:
        conn.init()
        if not isinstance(conn.parser.unreader, Unreader):
            address = network_of(str(conn.client[0])) if self._by_address else ""

            def leave() -> None:
                self.method_queue.defer(self._leave, conn)

            conn.parser.unreader = Unreader(conn.sock, address, leave)
        return conn.parser.unreader  # type: ignore[no-any-return]

    def _leave(self, conn: Any) -> None:
        if self._readers.pop(conn, None) is not None:
            conn.parser.unreader.has_place = False
            self._give_places()

    def _give_places(self) -> None:
        for conn in [*self._waiting]:
            address, theirs = conn.parser.unreader.address, [*self._readers.values()]
            if len(theirs) >= self._most_readers:
                return
            if not self._by_address or theirs.count(address) < self._bounds.WEB_BODIES_PER_ADDRESS.most:
                self._waiting.remove(conn)
                self._readers[conn] = address
                conn.parser.unreader.take_place()
                self.enqueue_req(conn)

    def _keep_few_unfinished(self, conn: Any) -> None:
        """Of too many unfinished requests, the one that began first is cut off: clients are done by then."""
        held = [*self.pending_conns, *self._waiting]
        if len(held) > self._bounds.WEB_UNFINISHED.most:
            self._bounds.WEB_UNFINISHED.reached()
        elif self._by_address and len(held) > self._bounds.WEB_UNFINISHED_PER_ADDRESS.most:
            address = conn.parser.unreader.address
            held = [each for each in held if each.parser.unreader.address == address]
            if len(held) <= self._bounds.WEB_UNFINISHED_PER_ADDRESS.most:
                return
            self._bounds.WEB_UNFINISHED_PER_ADDRESS.reached()
        else:
            return
        self._drop(min(held, key=lambda each: each.parser.unreader.begun))

    def _drop(self, conn: Any) -> None:
        if conn in self._waiting:
            self._waiting.remove(conn)
        else:
            self.pending_conns.remove(conn)
            self.poller.unregister(conn.sock)
        self.nr_conns -= 1
        conn.close()

"""The threaded worker of `web`, in which slow clients hold no threads but a few for large bodies.

A thread reads what has arrived of a request, and handles the request only if it is complete. Otherwise the connection
waits without a thread until more arrives. Large bodies, and bodies of unknown length, are read in a thread. A request
that gunicorn cannot parse gets a problem document, and its content is neither shown nor logged.
"""

from __future__ import annotations

import selectors
import socket
import sys
import time
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from typing import Any

import structlog
from gunicorn.http.errors import InvalidHeader, InvalidResponseHeader, InvalidResponseHeaderName, ParseException
from gunicorn.workers.gthread import _DEFER, ThreadWorker

from app.config import settings
from app.lib import json
from app.lib.addresses import network_of
from app.lib.files import raise_open_limit
from app.lib.request_ids import kept_or_new
from app.problems import problem_document
from app.serving.caller_limits import CallerLimits
from app.serving.unreader import Arrived, Unreader

log = structlog.get_logger(__name__)

# Longer than any request takes: after this time, a request must be waiting for its client.
PATIENCE_SECONDS = 70
# Seconds that a client has to close its connection, as in gunicorn.
_LINGER_SECONDS = 2
# Results of `handle`, besides gunicorn's own. _READS: a thread has to read the request. _QUEUES: the caller is at its
# limit of concurrent requests. _LINGERS: the connection is being closed.
_READS, _QUEUES, _LINGERS = object(), object(), object()
_OUR_FAULT = (InvalidResponseHeader, InvalidResponseHeaderName)


class BufferingWorker(ThreadWorker):
    """gunicorn's threaded worker. Limits the threads and connections that slow clients can occupy.

    The main thread keeps track of connections. `handle` runs in one of the other threads.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._begun: dict[Any, float] = {}  # connections in a thread, oldest first
        self._waiting: list[Any] = []  # connections whose large body waits to be read, oldest first
        self._readers: dict[Any, str] = {}  # connections whose large body is being read, and their addresses
        self._lingering: dict[Any, float] = {}  # connections that their clients have to close, and until when
        # Closed after the poller's events are handled, because some events may belong to these connections.
        self._cut_off: set[Any] = set()
        self._next_look = 0.0

    def init_process(self) -> None:
        """Prepares a worker process and serves. gunicorn calls it in that process."""
        # Imported only now: it creates metrics, whose files belong to the process that imports it.
        from app import bounds

        self._bounds = bounds
        # Behind a trusted proxy, one address may be everybody's.
        self._by_address = settings().trusted_proxies == 0
        self.worker_connections = bounds.WEB_CONNECTIONS.most
        self.max_keepalived = self.worker_connections - self.cfg.threads
        self._callers = CallerLimits(min(bounds.WEB_PER_CALLER.most, self.cfg.threads * 3 // 4))
        self._most_readers = min(bounds.WEB_BODIES.most, self.cfg.threads // 2)
        raise_open_limit(sys.maxsize)  # accepting without a free descriptor ends a worker
        super().init_process()

    def accept(self, listener: Any) -> None:
        """Accepts a connection. At the limit, closes the connection that has been idle for longest."""
        super().accept(listener)
        if self.nr_conns < self.worker_connections:
            return
        self._bounds.WEB_CONNECTIONS.reached()
        if self._lingering:
            self._cut_off.add(next(iter(self._lingering)))
        elif self.keepalived_conns:
            self.keepalived_conns[0].timeout = 0.0

    def handle(self, conn: Any) -> Any:
        """Handles a request if it has arrived, or may be read in this thread.

        Returns whether the connection is kept, or one of _DEFER, _READS, _QUEUES and _LINGERS.
        """
        unreader = self._unreader(conn)
        if self.alive and not unreader.has_place:
            state = unreader.gather()
            if state is not Arrived.ALL:
                return _DEFER if state is Arrived.PART else _READS
            if not self._callers.take(conn, unreader.caller()):
                return _QUEUES
        self._begun[conn] = time.monotonic()
        try:
            if super().handle(conn):
                unreader.renew()
                return True
            if unreader.linger():
                return _LINGERS
            # gunicorn would close the connection once more, and wait for the client in the main loop.
            conn.close()
            conn.close = lambda graceful=False: None
            return False
        finally:
            del self._begun[conn]

    def finish_request(self, conn: Any, fs: Any) -> None:
        """Keeps, queues or closes a connection after `handle`."""
        self._leave(conn)
        if (following := self._callers.end(conn)) is not None:
            self.enqueue_req(following)
        result = None if fs.cancelled() or fs.exception() else fs.result()
        if result is _READS:
            self._wait_for_place(conn)
        elif result is _QUEUES:
            self._bounds.WEB_PER_CALLER.reached()
            if self._callers.wait(conn, conn.parser.unreader.caller()):
                self.enqueue_req(conn)
        elif result is _LINGERS:
            self._lingering[conn] = time.monotonic() + _LINGER_SECONDS
            self.poller.register(conn.sock, selectors.EVENT_READ, partial(self._drain, conn))
        else:
            super().finish_request(conn, fs)
            if result is _DEFER:
                self._keep_few_unfinished(conn)

    def handle_request(self, req: Any, conn: Any) -> Any:
        """Handles a parsed request. Returns whether the connection is kept.

        Raises InvalidHeader for more than one Host header, and for none except in HTTP/1.0.
        """
        hosts = [name for name, _ in req.headers].count("HOST")
        if hosts > 1 or (not hosts and req.version > (1, 0)):  # RFC 9112, 3.2
            raise InvalidHeader("HOST", req=req)
        is_kept = super().handle_request(req, conn)
        req.is_answered = True
        return is_kept

    def handle_error(self, req: Any, client: socket.socket, addr: Any, exc: Exception) -> None:
        """Responds with 400 for a bad request, else with 500. Never raises if the client has gone."""
        # The error is in the unread rest of a body whose request was answered. The client would take a second response
        # for the response to its next request.
        if getattr(req, "is_answered", False):
            return
        is_theirs = isinstance(exc, ParseException) and not isinstance(exc, _OUR_FAULT)
        slug, trace_id = "malformed-request" if is_theirs else "internal-error", kept_or_new(None)
        if is_theirs:
            log.warning("request.unreadable", request_id=trace_id, reason=type(exc).__name__)
        else:
            log.error("request.broke", request_id=trace_id, exc_info=exc)
        with suppress(OSError):
            client.sendall(_response(problem_document(slug, None, trace_id, base_url=settings().base_url)))

    def murder_pending(self) -> None:
        """Hangs up on clients that are too slow. gunicorn calls it at least once a second."""
        super().murder_pending()
        now = time.monotonic()
        if now >= self._next_look:
            self._next_look = now + 1
            self._look(now)
        while self._cut_off:
            self._close(self._cut_off.pop())

    def _look(self, now: float) -> None:
        least = self._bounds.WEB_PROGRESS
        late = [each for each in self.pending_conns if each.parser.unreader.is_late(now, least.most)]
        self._cut_off.update(late)
        self._cut_off.update(each for each in self._waiting if now - each.parser.unreader.begun > PATIENCE_SECONDS)
        self._cut_off.update(each for each, ends in self._lingering.items() if now > ends)
        for conn, begun in [*self._begun.items()]:
            is_late = conn.parser.unreader.is_waiting and conn.parser.unreader.is_late(now, least.most)
            if is_late:
                late.append(conn)
            if is_late or now - begun > PATIENCE_SECONDS:
                with suppress(OSError):
                    conn.sock.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits for the client
        for _ in late:
            least.reached()

    def _unreader(self, conn: Any) -> Unreader:
        conn.init()
        if not isinstance(conn.parser.unreader, Unreader):
            address = network_of(str(conn.client[0])) if self._by_address else ""

            def leave() -> None:
                self.method_queue.defer(self._leave, conn)

            conn.parser.unreader = Unreader(conn.sock, address, leave)
        return conn.parser.unreader

    def _leave(self, conn: Any) -> None:
        if self._readers.pop(conn, None) is not None:
            conn.parser.unreader.has_place = False
            self._give_places()

    def _wait_for_place(self, conn: Any) -> None:
        self._waiting.append(conn)
        self._give_places()
        if conn not in self._readers:
            is_full = len(self._readers) >= self._most_readers
            (self._bounds.WEB_BODIES if is_full else self._bounds.WEB_BODIES_PER_ADDRESS).reached()
            self._keep_few_unfinished(conn)

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
        """If too many requests are unfinished, cuts off the oldest: an honest client is done by then."""
        held = [each for each in (*self.pending_conns, *self._waiting) if each not in self._cut_off]
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
        self._cut_off.add(min(held, key=lambda each: each.parser.unreader.begun))

    def _drain(self, conn: Any, _: socket.socket) -> None:
        if conn.parser.unreader.drain():
            self._close(conn)

    def _close(self, conn: Any) -> None:
        if conn in self._waiting:
            self._waiting.remove(conn)
        elif conn in self.pending_conns or conn in self._lingering:
            self.poller.unregister(conn.sock)
            if self._lingering.pop(conn, None) is None:
                self.pending_conns.remove(conn)
        else:
            return  # already closed, or in a thread again
        self.nr_conns -= 1
        conn.close()


def _response(document: dict[str, Any]) -> bytes:
    body, status = json.dumps(document), document["status"]
    head = (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nContent-Type: application/problem+json\r\n"
        f"X-Request-Id: {document['traceId']}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body

"""Hangs of PostgreSQL: a statement that waits for a server that answers nobody fails, instead of holding its thread.

psycopg2 waits in C and has no deadline. TCP finds nothing wrong with a host whose server is frozen.
"""

from __future__ import annotations

import os
import select
import socket
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from operator import itemgetter
from typing import Any

import psycopg2
import psycopg2.extensions
import structlog

log = structlog.get_logger(__name__)

CONNECT_SECONDS = 2  # libpq waits no shorter
# How long a statement waits before the server is probed, and how long the probe waits for each answer. With a look
# between them, less than two attempts to connect: a request that has waited for a thread during the first makes no
# third, and is answered within 5 seconds.
PATIENCE_SECONDS = 1.0
PROBE_SECONDS = 2.0
LOOKS_EVERY_SECONDS = 0.25
_REFUSAL = "PostgreSQL hangs: it has accepted no connection in time."


class Connection(psycopg2.extensions.connection):
    """A connection that another thread can cut while a statement waits on it. `watch`: that of its server."""

    watch: Watch
    _closing = threading.Lock()

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.cursor_factory = Cursor
        try:
            # A descriptor of our own: libpq closes its one when it likes, and another file may get the number.
            self._wire = socket.socket(fileno=os.dup(self.fileno()))
            self.address = self.watch.address = self._address()
        except OSError as error:  # such as too many open files
            super().close()
            raise psycopg2.OperationalError(str(error)) from error
        self._close_wire = weakref.finalize(self, self._wire.close)

    def _address(self) -> dict[str, Any]:
        """What leads to the same server again, where a name has several addresses or the URL several names."""
        options: dict[str, Any] = {"host": self.info.host, "port": self.info.port}
        if self._wire.family != socket.AF_UNIX:
            options["hostaddr"] = self._wire.getpeername()[0]
        return options

    def close(self) -> None:
        """Closes the connection. Safe to repeat."""
        super().close()
        with self._closing:
            self._close_wire()

    def cut(self) -> None:
        """Ends the connection under whatever waits on it. Call it from any thread; safe to repeat."""
        with self._closing, suppress(OSError):
            self._wire.shutdown(socket.SHUT_RDWR)


class Cursor(psycopg2.extensions.cursor):
    """A cursor whose statements the watch sees."""

    def execute(self, query: Any, vars: Any = None) -> None:
        """Raises OperationalError at once while the server hangs; the connection is closed then."""
        connection: Any = self.connection
        watch: Watch = connection.watch
        watch.waiting[connection] = time.monotonic()
        try:
            if watch.is_hanging:
                # A transaction that was open must not go on with the next statement.
                connection.cut()
                connection.close()
                raise psycopg2.OperationalError(_REFUSAL)
            super().execute(query, vars)
        finally:
            del watch.waiting[connection]


class Watch:
    """Knows since when each connection waits for the server, and whether the server hangs."""

    def __init__(self) -> None:
        self.waiting: dict[object, float] = {}
        self.is_hanging = False
        self.address: dict[str, Any] = {}  # of the latest connection

    def connect(self, connect: Callable[[], Any]) -> Any:
        """The connection that `connect` opens. Raises OperationalError at once while the server hangs."""
        attempt = object()
        self.waiting[attempt] = time.monotonic()
        try:
            if self.is_hanging:
                raise psycopg2.OperationalError(_REFUSAL)
            return connect()
        finally:
            del self.waiting[attempt]

    def run(self, connect: Callable[..., Any], stopping: threading.Event) -> None:
        """Probes the server when something has waited for long. `connect` makes connections with options of psycopg2.

        If the server hangs, cuts what waits and refuses what comes, until it accepts a connection. A server that
        answers is only slow, and one that refuses connections says so to all by itself.
        """
        while not stopping.wait(LOOKS_EVERY_SECONDS):
            seconds, address = self._longest_wait()
            if seconds < PATIENCE_SECONDS:
                continue
            try:
                _probe(partial(connect, **address))
            except TimeoutError:
                self._refuse_until_it_answers(connect, stopping)
                continue
            except psycopg2.Error as error:
                log.info("database.probe_refused", error=str(error).strip())
            stopping.wait(PATIENCE_SECONDS)  # or a slow statement would make it probe all the time

    def _longest_wait(self) -> tuple[float, dict[str, Any]]:
        """The longest wait: how long, and for which server."""
        now = time.monotonic()
        who, since = min(list(self.waiting.items()), key=itemgetter(1), default=(None, now))
        return now - since, who.address if isinstance(who, Connection) else self.address

    def _refuse_until_it_answers(self, connect: Callable[..., Any], stopping: threading.Event) -> None:
        began = time.monotonic()
        self.is_hanging = True
        waiting = [each for each in list(self.waiting) if isinstance(each, Connection)]
        log.error("database.hangs", cut=len(waiting))
        for connection in waiting:
            connection.cut()
        while not stopping.wait(LOOKS_EVERY_SECONDS):
            with suppress(psycopg2.Error):
                connect(connect_timeout=CONNECT_SECONDS).close()  # to whichever server answers now
                break
        self.is_hanging = False
        log.warning("database.answers", hung_seconds=round(time.monotonic() - began, 1))


watch = Connection.watch = Watch()


def _probe(connect: Callable[..., Any]) -> None:
    """Opens a connection and closes it. Raises TimeoutError, or psycopg2.Error if it is refused."""
    with closing(connect(async_=True)) as probe:
        while (wanted := probe.poll()) != psycopg2.extensions.POLL_OK:
            poller = select.poll()
            is_reading = wanted == psycopg2.extensions.POLL_READ
            poller.register(probe.fileno(), select.POLLIN if is_reading else select.POLLOUT)
            if not poller.poll(PROBE_SECONDS * 1000):
                raise TimeoutError

"""Detects a hung PostgreSQL server, so that statements fail instead of holding their threads.

psycopg2 waits in C without a deadline, and TCP sees nothing wrong with a host whose server is frozen.
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

CONNECT_SECONDS = 2  # libpq waits at least this long
# How long a statement waits before the server is probed, and how long the probe waits for each answer. Together with
# LOOKS_EVERY_SECONDS, this is less than two attempts to connect take. So even a request that first has to wait for a
# thread is answered within 5 seconds.
PATIENCE_SECONDS = 1.0
PROBE_SECONDS = 2.0
LOOKS_EVERY_SECONDS = 0.25
_REFUSAL = "PostgreSQL hangs: it has accepted no connection in time."


class Connection(psycopg2.extensions.connection):
    """A connection to the server of `watch` that another thread can cut while a statement waits."""

    watch: Watch
    _closing = threading.Lock()

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.cursor_factory = Cursor
        try:
            # A descriptor of our own: libpq may close its descriptor at any time, and another file may get the number.
            self._wire = socket.socket(fileno=os.dup(self.fileno()))
            self.address = self.watch.address = self._address()
        except OSError as error:  # such as too many open files
            super().close()
            raise psycopg2.OperationalError(str(error)) from error
        self._close_wire = weakref.finalize(self, self._wire.close)

    def _address(self) -> dict[str, Any]:
        """Returns the options that connect to the same server: the URL may name several hosts."""
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
        """Shuts the connection down, from any thread, while a statement waits on it. Safe to repeat."""
        with self._closing, suppress(OSError):
            self._wire.shutdown(socket.SHUT_RDWR)


class Cursor(psycopg2.extensions.cursor):
    """A cursor that registers its waiting statements with the watch."""

    def execute(self, query: Any, vars: Any = None) -> None:
        """Runs a statement. If the server hangs, closes the connection and raises OperationalError."""
        connection: Any = self.connection
        watch: Watch = connection.watch
        watch.waiting[connection] = time.monotonic()
        try:
            if watch.is_hanging:
                # Closes the connection, so that an open transaction cannot go on with its next statement.
                connection.cut()
                connection.close()
                raise psycopg2.OperationalError(_REFUSAL)
            super().execute(query, vars)
        finally:
            del watch.waiting[connection]


class Watch:
    """Records since when each connection has waited for the server, and whether the server hangs."""

    def __init__(self) -> None:
        self.waiting: dict[object, float] = {}
        self.is_hanging = False
        self.address: dict[str, Any] = {}  # the address of the latest connection

    def connect(self, connect: Callable[[], Any]) -> Any:
        """Returns the connection that `connect` opens. Raises OperationalError if the server hangs."""
        attempt = object()
        self.waiting[attempt] = time.monotonic()
        try:
            if self.is_hanging:
                raise psycopg2.OperationalError(_REFUSAL)
            return connect()
        finally:
            del self.waiting[attempt]

    def run(self, connect: Callable[..., Any], stopping: threading.Event) -> None:
        """Probes the server whenever something has waited for PATIENCE_SECONDS, until `stopping` is set.

        `connect` opens connections with options of psycopg2. If the server hangs, cuts all waiting connections and
        refuses new statements until the server accepts a connection. A server that answers the probe is only slow. If
        it refuses the probe, waiting statements fail without our help.
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
            stopping.wait(PATIENCE_SECONDS)  # otherwise, a slow statement would cause constant probing

    def _longest_wait(self) -> tuple[float, dict[str, Any]]:
        """Returns the longest wait in seconds, and the address of its server."""
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
                connect(connect_timeout=CONNECT_SECONDS).close()  # any server that answers will do
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

"""Connections to PostgreSQL, one a thread, replaced when the server has closed it; and transactions."""

from __future__ import annotations

import re
import select
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import psycopg2.extensions
from peewee import InterfaceError, OperationalError, PostgresqlDatabase

from app import metrics
from app.config import settings
from app.sql import Prepared

# What a lost or absent server raises.
DatabaseAway = (OperationalError, InterfaceError)

# Of the states with which PostgreSQL answers: no room left on its disk, in its memory, or for a connection.
_OUT_OF_ROOM = "53"

# No transaction waits for anything but the database, so one that is idle belongs to a process that is frozen.
# Every query has an index, and the plan of a prepared one may have been made while a table, or the partition of days to
# come, was still empty. To compile a query would take longer than to run it, whatever the planner expects that to cost.
_SESSION = (
    "-c timezone=UTC -c statement_timeout=30s -c idle_in_transaction_session_timeout=10s"
    " -c enable_seqscan=off -c jit=off"
)
# A server that vanished without a word is noticed within some fifteen seconds.
_TCP: dict[str, Any] = {
    "connect_timeout": 3,
    "keepalives_idle": 5,
    "keepalives_interval": 3,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}


# A connection in steady use finds out for itself.
_IDLE_SECONDS = 0.1
_READ = re.compile(r"(\s|--.*\n)*SELECT\b")


class Connection(psycopg2.extensions.connection):
    """A connection, and the statements that it has prepared."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.prepared: set[Prepared] = set()


class Database(PostgresqlDatabase):
    """PostgreSQL in autocommit mode. Threads do not share connections."""

    _used = threading.local()

    def execute_sql(self, sql: Any, params: Any = None) -> Any:
        if self.in_transaction():
            return self._execute(sql, params)
        # It may be the first for hours.
        self.freshen()
        try:
            return self._execute(sql, params)
        except DatabaseAway:
            if not (_READ.match(sql) and self._is_lost()):
                raise
            # What only reads can be read again. A write may have been committed before the connection was lost.
            self.discard()
            return self._execute(sql, params)

    def _execute(self, sql: Any, params: Any) -> Any:
        try:
            if isinstance(sql, Prepared) and sql not in (prepared := self.connection().prepared):
                super().execute_sql(sql.preparation)  # type: ignore[no-untyped-call]
                prepared.add(sql)
            return super().execute_sql(sql, params)  # type: ignore[no-untyped-call]
        except DatabaseAway:
            metrics.DATABASE_AWAY.inc()
            raise

    def freshen(self) -> None:
        """Drops a connection that the server has closed meanwhile; the next query makes another.

        Costs no round trip: the end of an idle connection is something to read.
        """
        last, self._used.at = getattr(self._used, "at", 0.0), time.monotonic()
        if self.is_closed():
            return
        connection, was_idle = self.connection(), self._used.at - last > _IDLE_SECONDS
        if connection.closed or (was_idle and self._has_hung_up(connection)):
            self.discard()

    def discard(self) -> None:
        """Drops this thread's connection, whatever state it is in; the next query makes another."""
        state = self._state  # type: ignore[attr-defined]
        if state.conn is not None:
            state.conn.close()
        state.reset()

    def _is_lost(self) -> bool:
        return not self.is_closed() and bool(self.connection().closed)

    @staticmethod
    def _has_hung_up(connection: Any) -> bool:
        poller = select.poll()
        poller.register(connection.fileno(), select.POLLIN)
        return bool(poller.poll(0))


database = Database(None)


def connect_to(url: str) -> None:
    """Points the process at a database; connections are made when they are needed."""
    url = url.replace("postgres://", "postgresql://", 1)
    database.init(url, connection_factory=Connection, options=_SESSION, **_TCP)


def connect() -> None:
    connect_to(settings().database_url)


@contextmanager
def transaction() -> Iterator[None]:
    """All or nothing. A connection lost on the way is dropped, so that the next transaction gets a new one."""
    database.freshen()
    try:
        with database.atomic():
            yield
    except DatabaseAway:
        if not database.in_transaction():
            database.discard()
        raise


@contextmanager
def savepoint(name: str = "undo") -> Iterator[None]:
    """Inside a transaction: what fails here undoes only itself. One inside another needs another name.

    It is not released: the next one hides it, the end of the transaction ends it, and a statement is saved.
    """
    rows(f"SAVEPOINT {name}")
    try:
        yield
    except BaseException:
        rows(f"ROLLBACK TO SAVEPOINT {name}")
        raise


def rows(sql: str, parameters: Sequence[Any] | Mapping[str, Any] = ()) -> list[tuple[Any, ...]]:
    """Runs one statement of `app/sql` or of a named query and returns its rows."""
    cursor = database.execute_sql(sql, parameters)
    return cursor.fetchall() if cursor.description else []


def now() -> datetime:
    """The time by the database's clock, on which all machines agree."""
    return rows("SELECT now()")[0][0]  # type: ignore[no-any-return]


def is_out_of_room(error: Exception) -> bool:
    """Whether PostgreSQL is there, and said that it has no room for this at present."""
    return str(getattr(getattr(error, "orig", None), "pgcode", None)).startswith(_OUT_OF_ROOM)


def batches(sql: str, parameters: Sequence[Any], size: int = 100) -> Iterator[list[Any]]:
    """The values of a query with one column, so many at a time; nothing is held open in between."""
    values = [value for (value,) in rows(sql, parameters)]
    for first in range(0, len(values), size):
        yield values[first : first + size]


def count(sql: str, parameters: Sequence[Any] | Mapping[str, Any] = ()) -> int:
    """Runs one statement and returns how many rows it touched."""
    return int(database.execute_sql(sql, parameters).rowcount)

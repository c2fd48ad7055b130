"""Transactions, and connections to PostgreSQL: one per thread, replaced after it was lost."""

from __future__ import annotations

import re
import select
import threading
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from datetime import datetime
from typing import Any

import psycopg2
import psycopg2.errors
import structlog
from peewee import InterfaceError, OperationalError, PostgresqlDatabase, ProgrammingError

from app import metrics
from app.config import settings
from app.lib import hangs, vitals
from app.lib.seldom import Seldom
from app.sql import Prepared, prepared

# Raised when the server cannot be reached, or the connection is lost.
DatabaseAway = (OperationalError, InterfaceError)
# Raised for a missing table or privilege. Migrations bypass peewee, so both classes are needed.
DatabaseRefuses = (ProgrammingError, psycopg2.ProgrammingError)

# No transaction waits for anything but the database, so a session that is idle in a transaction belongs to a frozen
# process. Sequential scans are off because every query has an index, but a prepared plan may have been made while a
# table or a future partition was still empty. JIT is off because compiling a query takes longer than running it,
# whatever the planner estimates.
SESSION = {
    "timezone": "UTC",
    "statement_timeout": "30s",
    "idle_in_transaction_session_timeout": "10s",
    "enable_seqscan": "off",
    "jit": "off",
}
# Notices within about fifteen seconds that a server has vanished silently.
_TCP: dict[str, Any] = {
    "connect_timeout": hangs.CONNECT_SECONDS,
    "keepalives_idle": 5,
    "keepalives_interval": 3,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}
# Makes the server notice as fast that our machine has vanished. The server then ends our sessions, which hold locks and
# use up connections.
_SERVERS_TCP = {
    "tcp_keepalives_idle": "5s",
    "tcp_keepalives_interval": "3s",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "15s",
}


log = structlog.get_logger(__name__)

_SAYING_FULL = Seldom(60.0)
# A connection that was used within this time finds out from its next query whether the server has hung up.
_IDLE_SECONDS = 0.1
_READ = re.compile(r"(\s|--.*\n|SET LOCAL [^;]*;)*SELECT\b")


class Connection(hangs.Connection):
    """A connection that knows the statements prepared on it."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.prepared: set[Prepared] = set()


class Database(PostgresqlDatabase):
    """PostgreSQL in autocommit mode. Threads do not share connections."""

    # Whether a connection keeps one server session, so that statements can be prepared on it.
    keeps_sessions = True

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._used = threading.local()
        super().__init__(*arguments, **options)
        # peewee connects under a lock, so a single attempt without an answer would block all threads.
        self._lock = nullcontext()

    def _connect(self) -> Any:
        watch: hangs.Watch = self.connect_params["connection_factory"].watch
        return watch.connect(super()._connect)  # type: ignore[misc]

    def execute_sql(self, sql: Any, params: Any = None) -> Any:
        """Runs a statement. Raises DatabaseAway.

        Outside a transaction, repeats a read whose connection was lost. Writes are never repeated.
        """
        if self.in_transaction():
            return self._execute(sql, params)
        # The connection may have been idle for hours.
        self.freshen()
        try:
            return self._execute(sql, params)
        except DatabaseAway:
            if not (_READ.match(sql.query if isinstance(sql, Prepared) else sql) and self._is_lost()):
                raise
            # Only a read can be repeated: a write may have been committed before the connection was lost.
            self.discard()
            return self._execute(sql, params)

    def _execute(self, sql: Any, params: Any) -> Any:
        try:
            if isinstance(sql, Prepared):
                sql = self._preparing(sql)
            return super().execute_sql(sql, params)  # type: ignore[no-untyped-call]
        except DatabaseAway as error:
            metrics.DATABASE_AWAY.inc()
            if is_full(error):
                metrics.DISK_REFUSALS.labels("database").inc()
                if _SAYING_FULL.is_due():
                    log.error("database.disk_full", error=str(error).strip(), remedy="make room on PostgreSQL's disk")
            raise

    def _preparing(self, sql: Prepared) -> str:
        """Returns the SQL that runs the query; prepares the query first if the session is kept."""
        if not self.keeps_sessions:
            return sql.query
        if sql not in (prepared := self.connection().prepared):
            super().execute_sql(sql.preparation)  # type: ignore[no-untyped-call]
            prepared.add(sql)
        return sql

    def freshen(self) -> None:
        """Drops this thread's connection if the server has closed it; the next query opens another.

        Costs no round trip: a closed connection is readable.
        """
        last, self._used.at = getattr(self._used, "at", 0.0), time.monotonic()
        if self.is_closed():
            return
        connection, was_idle = self.connection(), self._used.at - last > _IDLE_SECONDS
        if connection.closed or (was_idle and self._has_hung_up(connection)):
            self.discard()

    def discard(self) -> None:
        """Drops this thread's connection, whatever its state; the next query opens another."""
        state = self._state  # type: ignore[attr-defined]
        if state.conn is not None:
            state.conn.close()
        state.reset()

    @contextmanager
    def borrowing(self, other: Database) -> Iterator[None]:
        """Runs this thread's queries in the block on `other`; if that is lost, on this database again."""
        other.freshen()
        borrowed, state = other.connection(), self._state  # type: ignore[attr-defined]
        own = state.conn
        state.set_connection(borrowed)
        try:
            yield
        finally:
            if state.conn is not borrowed:
                self.discard()
            state.reset()
            if own is not None:
                state.set_connection(own)

    def borrows(self, other: Database) -> bool:
        """Whether this thread's queries run on `other`."""
        return not other.is_closed() and self._state.conn is other.connection()  # type: ignore[attr-defined]

    def _is_lost(self) -> bool:
        return not self.is_closed() and bool(self.connection().closed)

    @staticmethod
    def _has_hung_up(connection: Any) -> bool:
        poller = select.poll()
        poller.register(connection.fileno(), select.POLLIN)
        return bool(poller.poll(0))

    def point_at(self, url: str, pooling: str, connections: type[Connection] = Connection) -> None:
        """Sets the address. Opens no connection; the first query does.

        With `pooling` "transaction", a pooler gives each transaction a session of the server. The pooler then has to
        apply the settings of SESSION.
        """
        url = url.replace("postgres://", "postgresql://", 1)
        self.keeps_sessions = pooling == "session"
        self.init(url, connection_factory=connections, options=self._options(), **_TCP)

    def watch(self, name: str) -> None:
        """Watches the server in a thread of that name. Queries that wait for a hung server then fail."""
        watch: hangs.Watch = self.connect_params["connection_factory"].watch
        vitals.start(watch.run, name, self.connect_beside, threading.Event())

    def connect_beside(self, **options: Any) -> Any:
        """Opens another connection to the server. `options` are passed to psycopg2."""
        return psycopg2.connect(self.database, options=self._options(), **options)

    def _options(self) -> str:
        made = SESSION | _SERVERS_TCP if self.keeps_sessions else {}
        return " ".join(f"-c {name}={value}" for name, value in made.items())


database = Database(None)


def connect_to(url: str, pooling: str = "session") -> None:
    """Points the process at a database."""
    database.point_at(url, pooling)


def is_full(error: BaseException) -> bool:
    """Whether the error means that PostgreSQL's disk is full."""
    return isinstance(error.__context__, psycopg2.errors.DiskFull)


def connect() -> None:
    """Points the process at the database of its settings. Raises SettingsError."""
    connect_to(settings().database_url, settings().database_pooling)


def watch() -> None:
    """From now on, queries raise DatabaseAway within four seconds if the server hangs.

    For processes that people wait for. Workers do without: their next query would have to wait as well.
    """
    database.watch("hangs")


@contextmanager
def transaction() -> Iterator[None]:
    """Runs the block in a transaction: all or nothing.

    If the connection is lost, raises DatabaseAway, and the next transaction gets a new connection.
    """
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
    """Inside a transaction, undoes only this block if it raises.

    A nested savepoint needs another name. The savepoint is never released, which saves a statement: the next one of
    that name hides it, and the transaction's end drops it.
    """
    rows(f"SAVEPOINT {name}")
    try:
        yield
    except BaseException:
        rows(f"ROLLBACK TO SAVEPOINT {name}")
        raise


def rows(sql: str, parameters: Sequence[Any] | Mapping[str, Any] = ()) -> list[tuple[Any, ...]]:
    """Runs a statement and returns its rows; [] if there is no result. Raises DatabaseAway."""
    cursor = database.execute_sql(sql, parameters)
    return cursor.fetchall() if cursor.description else []


def which_hold(conditions: Sequence[str]) -> set[str]:
    """Returns the SQL conditions that hold. Many cost hardly more than one. Raises DatabaseAway."""
    query = f"SELECT ARRAY[{', '.join(f'({each})' for each in conditions)}]::boolean[]"
    [(held,)] = rows(prepared(f"which_hold_{zlib.crc32(query.encode())}", query))
    return {condition for condition, holds in zip(conditions, held, strict=True) if holds}


def now() -> datetime:
    """Returns the time on the database's clock, which all machines share."""
    return rows("SELECT now()")[0][0]  # type: ignore[no-any-return]


def batches(sql: str, parameters: Sequence[Any], size: int = 100) -> Iterator[list[Any]]:
    """Yields a single-column query's values, `size` at a time. Holds nothing open in between."""
    values = [value for (value,) in rows(sql, parameters)]
    for first in range(0, len(values), size):
        yield values[first : first + size]


def delete_some(
    table: str, condition: str, order: str, parameters: Sequence[Any] | Mapping[str, Any], limit: int
) -> int:
    """Deletes up to `limit` rows that meet the condition, the first by `order`; returns how many.

    Skips rows that another transaction has locked, so it is safe to run concurrently.
    """
    chosen = f"SELECT ctid FROM {table} WHERE {condition} ORDER BY {order} LIMIT {limit} FOR UPDATE SKIP LOCKED"
    return count(f"DELETE FROM {table} WHERE ctid = ANY(ARRAY({chosen}))", parameters)


def count(sql: str, parameters: Sequence[Any] | Mapping[str, Any] = ()) -> int:
    """Runs a statement and returns the number of rows it affected. Raises DatabaseAway."""
    return int(database.execute_sql(sql, parameters).rowcount)

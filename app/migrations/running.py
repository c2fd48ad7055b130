"""Runs steps of migrations beside working processes: nothing they need stays locked for long."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import structlog
from psycopg2.errors import DeadlockDetected, LockNotAvailable

from app.database import database, rows, transaction
from app.errors import SettingsError, first_line
from app.migrations.scripts import Batches, Index, Step, Transaction

log = structlog.get_logger(__name__)

# Everybody else queues behind a lock request. So the statements of a transaction wait for locks for about WAITS_MS in
# all, but each may wait for WAITS_AT_LEAST_MS. After a growing pause, in which the queue can empty, the transaction is
# tried again.
WAITS_MS, WAITS_AT_LEAST_MS = 500, 20
PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.5, 10.0
# An index of a smaller table is built under a lock, which takes milliseconds.
SMALL_BYTES = 1024**2
PAGES = 200  # pages of a table that are updated at a time

Note = Callable[[], None]


def run(step: Step, note: Note) -> None:
    """Runs a step, and `note` in its last transaction. Safe to repeat after an interruption."""
    match step:
        case Transaction(statements):
            _transact(statements, note)
        case Batches(update):
            _update(update)
            _transact([], note)
        case Index(name, is_replaced=True):
            following = [f"DROP INDEX {name}", f"ALTER INDEX {name}_next RENAME TO {name}"]
            _build(step, f"{name}_next", following, note)
        case Index(name):
            _build(step, name, [], note)


def _transact(statements: Sequence[str], note: Note = lambda: None) -> None:
    pause = PAUSE_SECONDS
    while True:
        try:
            with transaction():
                _execute(statements)
                note()
            return
        except (LockNotAvailable, DeadlockDetected) as error:
            statement = getattr(error.cursor, "query", b"").decode().partition("; ")[2]
            log.warning("migration.waits", statement=statement, error=first_line(error), again_in_seconds=pause)
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE_SECONDS)


def _execute(statements: Sequence[str]) -> None:
    rows("SET LOCAL statement_timeout = 0")
    began = time.monotonic()
    for statement in statements:
        left = max(WAITS_AT_LEAST_MS, WAITS_MS - int((time.monotonic() - began) * 1000))
        # Runs through a cursor without parameters, so that psycopg2 leaves % alone.
        database.connection().cursor().execute(f"SET LOCAL lock_timeout = {left}; {statement}")


def _update(update: str) -> None:
    table = update.split()[1]
    changed, _, condition = update.partition("WHERE")
    for piece in _pieces(table) or [table]:
        [(pages,)] = rows("SELECT pg_relation_size(%s::regclass) / current_setting('block_size')::int", (piece,))
        for page in range(0, pages, PAGES):
            in_batch = f"{table}.ctid >= '({page},0)' AND {table}.ctid < '({page + PAGES},0)'"
            _transact([f"{changed.replace(table, f'{piece} AS {table}', 1)}WHERE ({condition}) AND {in_batch}"])


def _build(index: Index, name: str, following: Sequence[str], note: Note) -> None:
    if _bytes(index.table) < SMALL_BYTES:
        _transact([index.statement(name, index.table, "IF NOT EXISTS"), *following], note)
        return
    if not database.keeps_sessions:
        raise SettingsError(
            f"building {index.name} takes long: give db upgrade the address of PostgreSQL itself, not of the pooler,"
            " with DATABASE_POOLING=session"
        )
    if _pieces(index.table):
        _build_in_pieces(index, name)
    else:
        _concurrently(index, name, index.table)
    _transact(following, note)


def _build_in_pieces(index: Index, name: str) -> None:
    # Creates the table's own index first, so that partitions that are created meanwhile get theirs from it.
    _transact([index.statement(name, f"ONLY {index.table}", "IF NOT EXISTS")])
    while pieces := _pieces_without(index.table, name):
        part = name + pieces[0].removeprefix(index.table)
        _concurrently(index, part, pieces[0])
        _transact([f"ALTER INDEX {name} ATTACH PARTITION {part}"])


def _concurrently(index: Index, name: str, table: str) -> None:
    log.info("migration.builds_index", index=name, table=table)
    # No timeout: the build waits for every open transaction, but blocks no reads or writes meanwhile.
    rows("SET statement_timeout = 0")
    try:
        # Drops the invalid index that an interrupted build leaves.
        if rows("SELECT 1 FROM pg_index WHERE indexrelid = to_regclass(%s) AND NOT indisvalid", (name,)):
            rows(f"DROP INDEX CONCURRENTLY {name}")
        database.connection().cursor().execute(index.statement(name, table, "CONCURRENTLY IF NOT EXISTS"))
    finally:
        rows("RESET statement_timeout")


def _pieces(table: str) -> list[str]:
    found = rows("SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = %s::regclass ORDER BY 1", (table,))
    return [piece for (piece,) in found]


def _pieces_without(table: str, index: str) -> list[str]:
    found = rows(
        """
        SELECT piece.inhrelid::regclass::text FROM pg_inherits piece WHERE piece.inhparent = %s::regclass
            AND NOT EXISTS (
                SELECT FROM pg_inherits part JOIN pg_index ON indexrelid = part.inhrelid
                WHERE part.inhparent = %s::regclass AND indrelid = piece.inhrelid)
        ORDER BY 1
        """,
        (table, index),
    )
    return [piece for (piece,) in found]


def _bytes(table: str) -> int:
    [(size,)] = rows(
        "SELECT sum(pg_relation_size(piece)) FROM (SELECT %s::regclass AS piece"
        " UNION ALL SELECT inhrelid FROM pg_inherits WHERE inhparent = %s::regclass) AS pieces",
        (table, table),
    )
    return int(size)

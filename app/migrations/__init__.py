"""Migrations: the numbered `.sql` files here, each run once, in order, beside working processes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial

import psycopg2

from app import partitions
from app.database import count, database, rows, servers
from app.errors import SettingsError
from app.migrations import running, scripts
from app.sql import schema

_LOCK = 0x42454C4C484F50  # one machine migrates at a time; others wait, then find nothing to do
_LOOKS_EVERY_SECONDS = 0.5


def upgrade() -> list[str]:
    """Runs the pending migrations, step by step, and returns their names.

    Safe to repeat and to run concurrently. After an interruption, goes on with the step that was interrupted. Finally
    creates the partitions of the near future, as the scheduler does from then on.

    Raises SettingsError before the very first migration if Bellhop cannot use the database, and like `pending`.
    """
    with _alone():
        if not rows("SELECT 1 WHERE to_regclass('migrations') IS NOT NULL"):
            servers.check()  # after the first migration, a fix would need a dump and restore
        rows("CREATE TABLE IF NOT EXISTS migrations (name text PRIMARY KEY, run_at timestamptz NOT NULL DEFAULT now())")
        rows("CREATE TABLE IF NOT EXISTS migration_steps (name text PRIMARY KEY, done integer NOT NULL)")
        names = pending()
        for name in names:
            _run(name)
    partitions.make_ahead()
    return names


def pending() -> list[str]:
    """Returns the migrations not yet run. Raises SettingsError if the database is older than 0.1.0."""
    if schema.is_too_old(rows):
        raise SettingsError("this database is older than release 0.1.0: run `db upgrade` of that release first")
    return schema.pending(rows)


def _run(name: str) -> None:
    steps = scripts.steps((schema.MIGRATIONS / name).read_text())
    done = sum(number for (number,) in rows("SELECT done FROM migration_steps WHERE name = %s", (name,)))
    for number, step in enumerate(steps[done:], done + 1):
        running.run(step, partial(_note, name, number, is_last=number == len(steps)))


def _note(name: str, number: int, is_last: bool) -> None:
    if is_last:
        rows("INSERT INTO migrations (name) VALUES (%s)", (name,))
        rows("DELETE FROM migration_steps WHERE name = %s", (name,))
        return
    noted = count(
        "INSERT INTO migration_steps (name, done) VALUES (%(name)s, %(number)s)"
        " ON CONFLICT (name) DO UPDATE SET done = excluded.done WHERE migration_steps.done = excluded.done - 1",
        {"name": name, "number": number},
    )
    assert noted, f"{name} is being run by another process, too"


@contextmanager
def _alone() -> Iterator[None]:
    # The lock belongs to an open transaction, so it also holds behind a pooler. This polls instead of letting
    # PostgreSQL wait: a concurrent index build waits for all transactions, even for those that would wait for this
    # lock.
    with closing(psycopg2.connect(database.database, **database.connect_params)) as beside, beside.cursor() as cursor:
        while True:
            cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
            cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", (_LOCK,))
            if cursor.fetchall() == [(True,)]:
                break
            beside.rollback()
            time.sleep(_LOOKS_EVERY_SECONDS)
        yield

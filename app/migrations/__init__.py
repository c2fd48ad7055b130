"""Migrations: the numbered `.sql` files here, each run once, in its own transaction, in order."""

from __future__ import annotations

from pathlib import Path

from app import partitions
from app.database import database, rows, transaction

_LOCK = 0x42454C4C484F50  # one machine migrates at a time; the others wait and then find nothing to do


def upgrade() -> list[str]:
    """Runs what has not been run and returns its names. Safe to repeat, and from several machines at once.

    Then makes the partitions of the near future, which the scheduler does from then on.
    """
    with transaction():
        rows("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        rows("SET LOCAL statement_timeout = 0")
        rows("CREATE TABLE IF NOT EXISTS migrations (name text PRIMARY KEY, run_at timestamptz NOT NULL DEFAULT now())")
        names = pending()
        for name in names:
            # psycopg2 reads % as a parameter only where parameters are given; a file is run as it stands.
            database.connection().cursor().execute((Path(__file__).parent / name).read_text())
            rows("INSERT INTO migrations (name) VALUES (%s)", (name,))
    partitions.make_ahead()
    return names


def pending() -> list[str]:
    """The names of the migrations that this database has not seen."""
    has_table = rows("SELECT to_regclass('migrations') IS NOT NULL")[0][0]
    done = {name for (name,) in rows("SELECT name FROM migrations")} if has_table else set()
    return [path.name for path in sorted(Path(__file__).parent.glob("*.sql")) if path.name not in done]

"""Migrations: the numbered `.sql` files in this folder, each run once and in order."""

from __future__ import annotations

from app import partitions
from app.database import database, rows, transaction
from app.sql import schema

_LOCK = 0x42454C4C484F50  # one machine migrates at a time; the others wait, then find nothing to do


def upgrade() -> list[str]:
    """Runs the pending migrations in one transaction and returns their names. Safe to repeat and to run concurrently.

    Then creates the partitions of the near future, as the scheduler does from then on.
    """
    with transaction():
        rows("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        rows("SET LOCAL statement_timeout = 0")
        rows("CREATE TABLE IF NOT EXISTS migrations (name text PRIMARY KEY, run_at timestamptz NOT NULL DEFAULT now())")
        names = pending()
        for name in names:
            # Through a cursor and without parameters, so that psycopg2 leaves % alone.
            database.connection().cursor().execute((schema.MIGRATIONS / name).read_text())
            rows("INSERT INTO migrations (name) VALUES (%s)", (name,))
    partitions.make_ahead()
    return names


def pending() -> list[str]:
    """The names of the migrations that have not been run on this database."""
    return schema.pending(rows)

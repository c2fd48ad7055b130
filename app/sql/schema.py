"""The schema that this code needs: a process that starts before the database has it waits for `db upgrade`."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg2
import structlog

from app.config import settings
from app.lib import hangs, versions

log = structlog.get_logger(__name__)

MIGRATIONS = Path(__file__).parents[1] / "migrations"
UPGRADE = "python -m app db upgrade"
LOOKS_EVERY_SECONDS = 1.0

Rows = Callable[[str], list[tuple[Any, ...]]]


def pending(rows: Rows) -> list[str]:
    """The names of the migrations that have not been run on the database that `rows` asks."""
    has_table = rows("SELECT to_regclass('migrations') IS NOT NULL")[0][0]
    done = {name for (name,) in rows("SELECT name FROM migrations")} if has_table else set()
    return [path.name for path in sorted(MIGRATIONS.glob("*.sql")) if path.name not in done]


def wait() -> None:
    """Logs which version starts; returns when no migration is pending, and asks for them in the log until then.

    Returns at once while PostgreSQL is away: each process has its own way to wait for that. SIGTERM and SIGINT end the
    process meanwhile. Only for the main thread. Leaves no connection behind, so the process may fork afterwards.
    """
    log.info("process.starts", version=versions.running())
    with _ending_at_signals():
        is_asked = False
        while names := _look():
            if not is_asked:
                log.warning("schema.waits_for_upgrade", run=UPGRADE, pending=len(names), first=names[0])
            is_asked = True
            time.sleep(LOOKS_EVERY_SECONDS)
        if is_asked:
            log.info("schema.upgraded")


def _look() -> list[str]:
    # Not through app.database: that imports the metrics, which gunicorn's master must not have.
    url, seconds = settings().database_url, hangs.CONNECT_SECONDS
    try:
        with closing(psycopg2.connect(url, connect_timeout=seconds)) as connection, connection.cursor() as cursor:

            def rows(sql: str) -> list[tuple[Any, ...]]:
                cursor.execute(sql)
                return cursor.fetchall()

            return pending(rows)
    except psycopg2.OperationalError as error:
        log.warning("schema.unknown", error=str(error).strip())
        return []


@contextmanager
def _ending_at_signals() -> Iterator[None]:
    # Dramatiq's worker would only note the signal and go on waiting; the first process of a container ignores it.
    before = {number: signal.signal(number, _end) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def _end(*_: object) -> None:
    sys.exit(0)

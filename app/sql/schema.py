"""The schema that this code needs: until it is there, processes that start wait for `db upgrade`."""

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
# The schema of release 0.1.0, in place of the files of that release, whose names come before it.
BASELINE, REPLACED = "0087_baseline.sql", 68
UPGRADE = "python -m app db upgrade"
LOOKS_EVERY_SECONDS = 1.0

Rows = Callable[[str], list[tuple[Any, ...]]]


def pending(rows: Rows) -> list[str]:
    """Returns the names of the migrations that have not run on the database that `rows` queries.

    A database on which all files of release 0.1.0 have run does not need the baseline.
    """
    done = _done(rows)
    if _replaced(done) == REPLACED:
        done.add(BASELINE)
    return [path.name for path in sorted(MIGRATIONS.glob("*.sql")) if path.name not in done]


def is_too_old(rows: Rows) -> bool:
    """Returns whether only some of the files of release 0.1.0 have run, so that the baseline cannot."""
    return _replaced(_done(rows)) not in (0, REPLACED)


def _done(rows: Rows) -> set[str]:
    has_table = rows("SELECT to_regclass('migrations') IS NOT NULL")[0][0]
    return {name for (name,) in rows("SELECT name FROM migrations")} if has_table else set()


def _replaced(done: set[str]) -> int:
    return sum(name < BASELINE for name in done)


def wait() -> None:
    """Logs which version starts, and waits until no migration is pending.

    If it has to wait, asks for `db upgrade` in the log. Returns at once while PostgreSQL is away: each process has its
    own way to wait for that. SIGTERM and SIGINT end the process during the wait. Call it on the main thread. Leaves no
    connection behind, so the process may fork afterwards.
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
    # Does not use app.database, which imports the metrics: gunicorn's master must not have them.
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
    # Without a handler, Dramatiq's worker would only note the signal, and a container's first process would ignore it.
    before = {number: signal.signal(number, lambda *_: sys.exit(0)) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)

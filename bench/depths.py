"""What the signals of a backlog cost PostgreSQL: `python -m bench.depths` prints a line per size.

Fills its own server with jobs of few workspaces, deliveries of many endpoints, and arrivals that each have another
sender. Then it measures the blocks and milliseconds that one call of each signal takes, and how many calls cover
everything.
"""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from app import database, migrations
from app.config import settings
from app.database import rows
from app.domain.channels import arrivals
from app.domain.deliveries import lanes
from app.domain.jobs import jobs
from app.mailbox import Mail, count_waiting, overdue
from scheduler.overdue import MOST_LOOKED_AT
from scheduler.signals import PART
from tests.stack.postgres import Postgres

SIZES = (10_000, 100_000, 1_000_000)
_DUE = "now() - interval '1 hour' + n * interval '1 ms'"
# Leaves out finished rows: they would only make the tables larger, because the signals never read them.
FILL = {
    jobs.MAIL: f"""
        INSERT INTO jobs (id, workspace_id, kind, trace_id, due_at)
        SELECT 'job_' || lpad(n::text, 26, '0'), 'ws_' || n %% 10, 'contacts.upsert', 't', {_DUE}
        FROM generate_series(1, %s) AS n
    """,
    lanes.FAST: f"""
        INSERT INTO deliveries (id, endpoint_id, workspace_id, event_id, kind, due_at)
        SELECT 'whd_' || lpad(n::text, 26, '0'), 'whe_' || n %% 100000, 'ws_1', 'evt_1', 'contact.created', {_DUE}
        FROM generate_series(1, %s) AS n
    """,
    arrivals.MAIL: f"""
        INSERT INTO arrivals (id, channel_id, workspace_id, sender_key, key, kind, trace_id, payload, due_at)
        SELECT 'arr_' || n, 'chn_1', 'ws_1', 'sender_' || n, n, 'received', 't', '{{}}', {_DUE}
        FROM generate_series(1, %s) AS n
    """,
}


def main() -> None:
    """Prints the table. Takes about three minutes."""
    print(f"{'mail':<12}{'waiting':>10} | count: blocks   ms  calls  counted | oldest: blocks   ms  calls  seconds")
    with _server():
        for mail in FILL:
            for size in SIZES:
                _fill(mail, size)
                print(f"{mail.table:<12}{size:>10}", _counting(mail), _looking(mail), sep=" | ", flush=True)


def _counting(mail: Mail) -> str:
    blocks, began, calls, counted, after = _blocks(), time.monotonic(), 0, 0, None
    while after is not None or not calls:
        found, after = count_waiting(mail, PART, after)
        counted, calls = counted + sum(found.values()), calls + 1
    ms = (time.monotonic() - began) * 1000
    return f"{(_blocks() - blocks) / calls:>13.0f} {ms / calls:>4.0f} {calls:>6} {counted:>8}"


def _looking(mail: Mail) -> str:
    blocks, began, calls, oldest, after = _blocks(), time.monotonic(), 0, 0.0, ""
    while after or not calls:
        _, after, seconds = overdue(mail, 1, MOST_LOOKED_AT, after)
        oldest, calls = max(oldest, *seconds.values()), calls + 1
    ms = (time.monotonic() - began) * 1000
    return f"{(_blocks() - blocks) / calls:>14.0f} {ms / calls:>4.1f} {calls:>6} {oldest:>8.0f}"


def _blocks() -> int:
    """Returns how many blocks of tables and indexes this session has read, from memory or disk."""
    rows("SELECT pg_stat_force_next_flush()")
    return int(rows("SELECT sum(blks_hit + blks_read) FROM pg_stat_database")[0][0])


def _fill(mail: Mail, size: int) -> None:
    rows("SET session_replication_role = replica; SET statement_timeout = 0")
    rows(f"TRUNCATE {mail.table}, endpoints CASCADE")
    rows(
        "INSERT INTO endpoints (id, workspace_id, address, events, secret)"
        " SELECT 'whe_' || n, 'ws_1', 'https://a/', '{*}', 'x' FROM generate_series(0, 99999) AS n"
    )
    rows(FILL[mail], (size,))
    rows(f"ANALYZE {mail.table}, endpoints")


@contextmanager
def _server() -> Iterator[None]:
    with TemporaryDirectory(prefix="bellhop-depths-") as directory:
        postgres = Postgres(Path(directory), settings={"fsync": "off", "autovacuum": "off", "shared_buffers": "256MB"})
        postgres.start()
        os.environ.update(DATABASE_URL=postgres.database_url("depths"), REDIS_URL="redis://", SECRET_KEY="x" * 32)
        settings.cache_clear()
        try:
            database.connect_to(postgres.create_database("depths"))
            migrations.upgrade()
            yield
        finally:
            database.database.close()
            postgres.stop()


if __name__ == "__main__":
    sys.exit(main())

"""Steady work on one mailbox of writes, and the blocks that PostgreSQL reads for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from app.database import Database, database, rows
from app.domain.jobs.jobs import MAIL
from app.lib import ids
from app.mailbox import serving

ROOM = 20


def post(owner: str, number: int) -> None:
    """Accepts so many writes."""
    made = [ids.new("job") for _ in range(number)]
    rows(
        "INSERT INTO jobs (id, workspace_id, kind, trace_id)"
        " SELECT id, %s, 'contacts.upsert', 't' FROM unnest(%s::text[]) AS id",
        (owner, made),
    )


def take(owner: str, room: int = ROOM) -> int:
    """Looks, claims and finishes as a worker does; returns the blocks read by the look and the claim."""
    before = _blocks()
    batch = serving._take(MAIL, owner, room)
    read = _blocks() - before
    finished = "UPDATE jobs SET due_at = NULL, leased_until = NULL, finished_at = now() WHERE id = ANY(%s)"
    rows(finished, ([each.id for each in batch],))
    return read


def go_on(owner: str, writes: int) -> None:
    """Accepts and finishes so many writes."""
    for _ in range(writes // 200):
        post(owner, 200)
        take(owner, 200)


def blocks_of_claims(owner: str, claims: int = 10) -> float:
    """The blocks of tables and indexes that a look and a claim of ROOM writes read, on average."""
    read = 0
    for _ in range(claims):
        post(owner, ROOM)
        read += take(owner)
    return read / claims


@contextmanager
def snapshot_held() -> Iterator[None]:
    """Another connection has taken a snapshot, in a transaction that only reads."""
    other = Database(None)
    other.init(**{"database": database.database, **database.connect_params})
    other.execute_sql("SET idle_in_transaction_session_timeout = 0")
    other.execute_sql("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    other.execute_sql("SELECT 1 FROM pg_class LIMIT 1")
    try:
        yield
    finally:
        other.close()


def _blocks() -> int:
    rows("SELECT pg_stat_force_next_flush()")
    read = """
        SELECT sum(coalesce(heap_blks_hit, 0) + coalesce(heap_blks_read, 0) + coalesce(idx_blks_hit, 0)
            + coalesce(idx_blks_read, 0)) FROM pg_statio_user_tables
    """
    return int(rows(read)[0][0])

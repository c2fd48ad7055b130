"""Partitions of the tables that only grow: created ahead of time, and dropped when they expire.

A partition is a range of identifiers, which is a range of time. Both passes are safe to run concurrently, on any
machine. They skip a table that is in use, and try again at the next pass. Until a partition exists, its rows go to the
table's default partition.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

import structlog
from peewee import OperationalError
from psycopg2.errors import DeadlockDetected, LockNotAvailable, QueryCanceled

from app.config import settings
from app.database import count, delete_some, now, rows, transaction
from app.lib import ids

log = structlog.get_logger(__name__)

BATCH = 5_000
MOST_BATCHES = 10

_LOCK = 0x42454C4C50415254  # only one process changes partitions at a time
# Other users of the table queue behind our lock request, so waiting and working are both kept short.
_LOCK_TIMEOUT, _STATEMENT_TIMEOUT = "500ms", "5s"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Partitioned:
    """A table partitioned by the identifiers in its column `key`, into pieces of `days` days."""

    table: str
    key: str
    prefix: str
    days: int
    ahead: int  # how many pieces to create beyond the current one
    retention: str = "history_retention_days"  # the setting that says for how many days rows are kept
    unfinished: str = "false"  # SQL condition on rows that must not be dropped
    meter: str | None = None  # keep rows that this meter has not counted yet
    fillfactor: int = 100  # percent of a page that new rows fill; updates use the rest

    @property
    def default(self) -> str:
        """The name of the table's default partition."""
        return f"{self.table}_default"

    def pieces(self, at: datetime) -> list[Piece]:
        """Returns the current piece and the `ahead` next ones."""
        # Pieces begin at multiples of their width, so that all machines agree on them.
        present = (at - _EPOCH) // (self.days * _DAY)
        starts = [_EPOCH + number * self.days * _DAY for number in range(present, present + self.ahead + 1)]
        return [
            Piece(
                f"{self.table}_{start:%Y%m%d}",
                ids.bound(self.prefix, start),
                ids.bound(self.prefix, start + self.days * _DAY),
            )
            for start in starts
        ]

    def expired(self, at: datetime) -> str:
        """Returns the lowest identifier to keep. All rows below are expired, and counted by `meter`."""
        counted = rows("SELECT counted_until FROM usage_progress WHERE meter = %s", (self.meter,))
        return ids.bound(
            self.prefix, min([at - getattr(settings(), self.retention) * _DAY, *(until for (until,) in counted)])
        )


@dataclass(frozen=True, slots=True)
class Piece:
    """A partition: it holds identifiers from `low` (inclusive) to `high` (exclusive)."""

    name: str
    low: str
    high: str


RUN_STEPS = Partitioned("run_steps", "id", "stp", 30, 2)
# Claims read every piece of deliveries, so there should be few. Bodies are most of the volume, so events have daily
# pieces. Attempts have the same pieces as their deliveries, and are dropped before them.
TABLES = (
    Partitioned("events", "id", "evt", 1, 7, "body_retention_days", "due_at IS NOT NULL", "active_contacts"),
    Partitioned("attempts", "delivery_id", "dlv", 30, 2),
    Partitioned("deliveries", "id", "dlv", 30, 2, meter="deliveries", fillfactor=45),
    Partitioned("jobs", "id", "job", 30, 2, unfinished="due_at IS NOT NULL OR unknown_since IS NOT NULL"),
    RUN_STEPS,
)


def make_ahead(at: datetime | None = None) -> int:
    """Creates the missing partitions of the present and the near future; returns how many."""
    at = at or now()
    made = 0
    for each in TABLES:
        there = existing(each)
        for piece in each.pieces(at):
            if not _overlaps(piece, there):
                is_present = piece.low <= ids.bound(each.prefix, at)
                made += _unless_in_use(piece.name, partial(_make, each, piece, is_present))
    return made


def drop_expired(at: datetime | None = None) -> int:
    """Drops the expired partitions; returns how many. Deletes expired rows of default partitions."""
    at = at or now()
    dropped = 0
    for each in TABLES:
        expired = each.expired(at)
        for piece in existing(each):
            if piece.high <= expired:
                dropped += _unless_in_use(piece.name, partial(_drop, each, piece))
        if deleted := _delete_expired(each, expired):
            log.info("partition.rows_deleted", name=each.default, rows=deleted)
    return dropped


def existing(each: Partitioned) -> list[Piece]:
    """Returns the partitions of a table, oldest first, without the default one."""
    return [
        Piece(*row)
        for row in rows(
            """
            WITH pieces AS MATERIALIZED (  -- the bounds are read once: they are NULL once another has dropped it
                SELECT child.relname AS name, regexp_match(
                    pg_get_expr(child.relpartbound, child.oid), 'FROM \\(''(\\w+)''\\) TO \\(''(\\w+)''\\)') AS bounds
                FROM pg_inherits JOIN pg_class child ON child.oid = inhrelid WHERE inhparent = %s::regclass
            )
            SELECT name, bounds[1], bounds[2] FROM pieces WHERE bounds IS NOT NULL ORDER BY bounds[1] COLLATE "C"
            """,
            (each.table,),
        )
    ]


def _make(each: Partitioned, piece: Piece, is_present: bool) -> int:
    with transaction():
        _hurry()
        if _overlaps(piece, existing(each)):
            return 0
        rows(f"CREATE TABLE {piece.name} (LIKE {each.table} INCLUDING ALL) WITH (fillfactor = {each.fillfactor})")
        # Attaching a partition locks only the default one. If rows may have to move, this locks the whole table: a
        # query that was planned before would not see the moved rows.
        rows(f"LOCK TABLE {each.table if is_present else each.default} IN ACCESS EXCLUSIVE MODE")
        moved = count(
            f"""
            WITH moved AS (DELETE FROM {each.default} WHERE {each.key} >= %s AND {each.key} < %s RETURNING *)
            INSERT INTO {piece.name} SELECT * FROM moved
            """,
            (piece.low, piece.high),
        )
        rows(
            f"ALTER TABLE {each.table} ATTACH PARTITION {piece.name} FOR VALUES FROM (%s) TO (%s)",
            (piece.low, piece.high),
        )
    log.info("partition.made", name=piece.name, moved=moved)
    return 1


def _drop(each: Partitioned, piece: Piece) -> int:
    with transaction():
        _hurry()
        if piece not in existing(each):
            return 0
        # DETACH … CONCURRENTLY would not need this lock, but does not work beside a default partition.
        rows(f"LOCK TABLE ONLY {each.table} IN ACCESS EXCLUSIVE MODE")
        if rows(f"SELECT 1 FROM {piece.name} WHERE {each.unfinished} LIMIT 1"):
            log.warning("partition.kept", name=piece.name, reason="something in it is not finished")
            return 0
        rows(f"DROP TABLE {piece.name}")
    log.info("partition.dropped", name=piece.name)
    return 1


def _delete_expired(each: Partitioned, expired: str) -> int:
    deleted = 0
    for _ in range(MOST_BATCHES):
        is_old = f"{each.key} >= %s AND {each.key} < %s AND ({each.unfinished}) IS NOT TRUE"
        batch = delete_some(each.default, is_old, each.key, (f"{each.prefix}_", expired), BATCH)
        deleted += batch
        if batch < BATCH:
            break
    return deleted


def _hurry() -> None:
    rows(f"SET LOCAL lock_timeout = '{_LOCK_TIMEOUT}'")
    rows(f"SET LOCAL statement_timeout = '{_STATEMENT_TIMEOUT}'")
    rows("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))


def _overlaps(piece: Piece, others: list[Piece]) -> bool:
    # Compares ranges, not names: another version of Bellhop may use another width.
    return any(piece.low < other.high and other.low < piece.high for other in others)


def _unless_in_use(name: str, change: Callable[[], int]) -> int:
    """Returns the result of `change`; 0 if a lock or statement timed out: the next pass tries again."""
    try:
        return change()
    except OperationalError as error:
        if not isinstance(getattr(error, "orig", None), LockNotAvailable):
            raise
        log.warning("partition.in_use", name=name, error=str(error).strip())
    except (QueryCanceled, DeadlockDetected) as error:  # peewee does not wrap these
        log.warning("partition.in_use", name=name, error=str(error).strip())
    return 0

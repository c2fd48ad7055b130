"""Runs expensive reads on a replica of PostgreSQL, if there is one.

A read finds everything that was committed when it began, as on the primary. It waits until the replica has caught up;
if the replica is away or too far behind, the read runs on the primary.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache, wraps
from typing import ParamSpec, TypeVar

import structlog

from app import metrics
from app.config import settings
from app.database import Connection, Database, DatabaseAway, database, rows
from app.lib import hangs

log = structlog.get_logger(__name__)
P = ParamSpec("P")
T = TypeVar("T")

# How long to wait for a replica that is behind, and how long not to use one that failed.
PATIENCE_SECONDS, REST_SECONDS = 0.25, 5.0
_LOOKS_EVERY_SECONDS = 0.01
_rests_until = 0.0


class Unfit(Exception):
    """The replica cannot answer. The text is `away`, `behind`, or `none` if the server is no replica."""


class _Connection(Connection):
    watch = hangs.Watch()


def may_read(read: Callable[P, T]) -> Callable[P, T]:
    """Lets the function read from the replica.

    The function must only read, because it is called again on the primary if the replica fails.
    """

    @wraps(read)
    def reading(*arguments: P.args, **options: P.kwargs) -> T:
        replica = _replica()
        if replica is None or _is_out_of_question(replica):
            return read(*arguments, **options)
        [(reached,)] = rows("SELECT pg_current_wal_flush_lsn()::text")
        try:
            with database.borrowing(replica):
                _wait(replica, reached)
                found = read(*arguments, **options)
        except (Unfit, *DatabaseAway) as error:
            _leave_alone(error)
            return read(*arguments, **options)
        metrics.REPLICA_READS.labels("replica").inc()
        return found

    return reading


def watch() -> None:
    """Watches the replica like `database.watch` watches the primary. Does nothing without a replica."""
    if (replica := _replica()) is not None:
        replica.watch("replica hangs")


def seconds_behind() -> float | None:
    """Returns the age in seconds of the last replayed change; None without a replica.

    0 if the replica has replayed everything. Raises DatabaseAway, or Unfit if the server is no replica.
    """
    if (replica := _replica()) is None:
        return None
    replica.freshen()
    [(is_replica, seconds)] = replica.execute_sql(_BEHIND).fetchall()
    if not is_replica:
        raise Unfit("none")
    return float(seconds)


@cache
def _replica() -> Database | None:
    if (url := settings().database_replica_url) is None:
        return None
    replica = Database(None)
    replica.point_at(url, settings().database_pooling, _Connection)
    return replica


def _is_out_of_question(replica: Database) -> bool:
    return database.in_transaction() or database.borrows(replica) or time.monotonic() < _rests_until


def _wait(replica: Database, reached: str) -> None:
    ends = time.monotonic() + PATIENCE_SECONDS
    while True:
        [(is_replica, has_replayed)] = rows(_REPLAYED, (reached,))
        if not database.borrows(replica):
            raise Unfit("away")  # the replica was lost, and the primary has answered
        if not is_replica:
            raise Unfit("none")
        if has_replayed:
            return
        if time.monotonic() > ends:
            raise Unfit("behind")
        time.sleep(_LOOKS_EVERY_SECONDS)


def _leave_alone(error: Exception) -> None:
    global _rests_until
    _rests_until = time.monotonic() + REST_SECONDS
    outcome = str(error) if isinstance(error, Unfit) else "away"
    metrics.REPLICA_READS.labels(outcome).inc()
    log.warning("replica.left_alone", outcome=outcome, seconds=REST_SECONDS, error=str(error).strip() or None)


_REPLAYED = "SELECT pg_is_in_recovery(), pg_last_wal_replay_lsn() >= %s::pg_lsn"
_BEHIND = """
    SELECT pg_is_in_recovery(), CASE WHEN pg_last_wal_receive_lsn() <= pg_last_wal_replay_lsn() THEN 0
        ELSE extract(epoch FROM now() - coalesce(pg_last_xact_replay_timestamp(), now())) END::float
"""

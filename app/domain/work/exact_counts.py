"""Exact counts of many rows: exact or refused, and one at a time in each workspace."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from peewee import OperationalError
from psycopg2.errors import QueryCanceled

from app.database import rows
from app.errors import Conflict

# Counting a million deliveries or jobs takes about a third of this.
LONGEST_SECONDS = 15
BUSY = "Another preview of this workspace is being counted. Try again when it has ended."


@contextmanager
def in_time(refusal: str) -> Iterator[None]:
    """Limits each statement of the block to LONGEST_SECONDS. Use it inside a transaction.

    Raises Conflict with `refusal` if a statement takes longer; the transaction must then roll back.
    """
    rows(f"SET LOCAL statement_timeout = '{LONGEST_SECONDS}s'")
    try:
        yield
    except OperationalError as error:
        if not isinstance(getattr(error, "orig", None), QueryCanceled):
            raise
        raise Conflict(refusal) from error
    rows("RESET statement_timeout")


def be_alone(workspace_id: str) -> None:
    """Reserves the counting of previews in the workspace until the transaction ends.

    Raises Conflict if another transaction has it.
    """
    if rows(_ONE_AT_A_TIME, (f"previews:{workspace_id}",)) == [(False,)]:
        raise Conflict(BUSY)


_ONE_AT_A_TIME = "SELECT pg_try_advisory_xact_lock(hashtextextended(%s, 0))"

"""Exact counts: of many rows, exact or not given at all, and one at a time for each workspace."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from peewee import OperationalError
from psycopg2.errors import QueryCanceled

from app.database import rows
from app.errors import Conflict

# A million deliveries or jobs take about a third of this.
LONGEST_SECONDS = 15
BUSY = "Another preview of this workspace is being counted. Try again when it has ended."


@contextmanager
def in_time(refusal: str) -> Iterator[None]:
    """Inside a transaction, which an error undoes: limits each statement of the block to LONGEST_SECONDS.

    Raises Conflict with `refusal` if one takes longer.
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
    """Until the transaction ends, nobody else counts a preview of the workspace. Raises Conflict if somebody does."""
    if rows(_ONE_AT_A_TIME, (f"previews:{workspace_id}",)) == [(False,)]:
        raise Conflict(BUSY)


_ONE_AT_A_TIME = "SELECT pg_try_advisory_xact_lock(hashtextextended(%s, 0))"

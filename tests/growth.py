"""How much work something is, by figures that no other process on the machine changes: calls, and blocks read."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

from app import database
from tests.cast import one


def calls(work: Callable[[], object]) -> int:
    """How many functions are called meanwhile, those in C included."""
    number = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal number
        number += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return number


def blocks_read(table: str) -> int:
    """How many blocks of the table's partitions and their indexes have been looked at."""
    database.rows("SELECT pg_stat_force_next_flush()")
    return int(
        one(
            "SELECT coalesce(sum(heap_blks_hit + heap_blks_read + idx_blks_hit + idx_blks_read), 0)"
            " FROM pg_statio_user_tables WHERE relname LIKE %s",
            f"{table}%",
        )
    )

"""Row locks for work in parts: taken in order, without waiting."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from app.database import rows
from app.domain.work.units import Busy


def lock_first(table: str, row_ids: Sequence[str]) -> list[str]:
    """Locks the rows up to the first one that another transaction has locked; returns their ids.

    Raises Busy if the very first row is locked.
    """
    lock = f"SELECT id FROM {table} WHERE id = ANY(%s) ORDER BY id FOR NO KEY UPDATE SKIP LOCKED"
    locked = {id for (id,) in rows(lock, (list(row_ids),))}
    first = list(takewhile(locked.__contains__, row_ids))
    if row_ids and not first:
        raise Busy
    return first

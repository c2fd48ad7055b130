"""Stored bytes: how much an address, visitor, channel or workspace may store within an hour.

They are counted in PostgreSQL, so the bounds hold without Redis, and two files cannot both take the last bytes.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from app import sql
from app.bounds import Bound
from app.database import count, rows, transaction
from app.errors import TooMuchStored


@contextmanager
def taken(size: int, bounds: Mapping[str, Bound]) -> Iterator[None]:
    """Takes `size` bytes for the block, and gives them back if it raises. Raises TooMuchStored."""
    take(size, bounds)
    try:
        yield
    except BaseException:
        give_back(size, bounds)
        raise


def take(size: int, bounds: Mapping[str, Bound]) -> None:
    """Takes `size` bytes from the allowance of every name, or from none. Raises TooMuchStored."""
    by_key = {_key(name, bound): bound for name, bound in bounds.items()}
    with transaction():
        # In key order, so that two files do not deadlock.
        taken = rows(sql.load("take_bytes"), {"keys": sorted(by_key), "bytes": size})
        for key, stored, seconds in taken:
            bound = by_key[bytes(key)]
            if stored > bound.most:
                bound.reached()
                raise TooMuchStored(math.ceil(seconds))


def give_back(size: int, bounds: Mapping[str, Bound]) -> None:
    """Gives back bytes that were taken but not stored."""
    count(
        """
        UPDATE stored_bytes SET bytes = greatest(bytes - %s, 0) WHERE key IN (
            SELECT key FROM stored_bytes WHERE key = ANY(%s::bytea[]) AND ends_at > now() ORDER BY key FOR UPDATE)
        """,
        (size, [_key(name, bound) for name, bound in bounds.items()]),
    )


def _key(name: str, bound: Bound) -> bytes:
    return hashlib.sha256(f"{bound.name}\0{name}".encode()).digest()

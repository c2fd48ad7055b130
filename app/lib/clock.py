"""The one clock; tests move it with `moved_by`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

_offset = timedelta()


def now() -> datetime:
    """The time in UTC. What must agree between machines uses the database's `now()` instead."""
    return datetime.now(UTC) + _offset


@contextmanager
def moved_by(**units: float) -> Iterator[None]:
    """Moves this process's clock, as in `moved_by(hours=25)`, for the length of the block."""
    global _offset
    before, _offset = _offset, _offset + timedelta(**units)
    try:
        yield
    finally:
        _offset = before

"""The only clock of the application; tests move it with `moved_by`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

_offset = timedelta()


def now() -> datetime:
    """Returns the time in UTC. Where machines must agree, use the database's `now()` instead."""
    return datetime.now(UTC) + _offset


def moved(at: datetime) -> datetime:
    """Shifts a time of the database's clock by as much as tests have moved this process's clock."""
    return at + _offset


@contextmanager
def moved_by(**units: float) -> Iterator[None]:
    """Moves this process's clock for the duration of the block, as in `moved_by(hours=25)`."""
    global _offset
    before, _offset = _offset, _offset + timedelta(**units)
    try:
        yield
    finally:
        _offset = before

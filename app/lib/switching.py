"""Makes Python switch threads sooner while a thread may compute for long."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

# Python lets a computing thread go on for 5 ms after another thread asks for the interpreter. A request asks after each
# of its statements, so it would wait that long each time, for each computing thread. If threads always switched sooner,
# computing would be slower by some percent.
USUAL_SECONDS, SOONER_SECONDS = sys.getswitchinterval(), 0.001
_lock = threading.Lock()
_under_way = 0


def begin_sharing() -> None:
    """Makes threads switch sooner during work that may compute for long. Call `end_sharing` after it."""
    _count(1)


def end_sharing() -> None:
    """Marks the end of work that `begin_sharing` has announced."""
    _count(-1)


@contextmanager
def sharing() -> Iterator[None]:
    """Runs the block, which may compute for long, while threads switch sooner."""
    begin_sharing()
    try:
        yield
    finally:
        end_sharing()


def _count(number: int) -> None:
    global _under_way
    with _lock:
        _under_way += number
        sys.setswitchinterval(SOONER_SECONDS if _under_way else USUAL_SECONDS)

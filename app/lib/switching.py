"""The interpreter: while something may compute for long, the other threads of its process get it sooner."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

# Python lets a thread that computes go on for 5 ms after another asks for the interpreter. A request asks for it after
# each of its statements, and would wait for that long each time, for each thread that computes. Always to switch sooner
# would make all threads that compute slower by some percent.
USUAL_SECONDS, SOONER_SECONDS = sys.getswitchinterval(), 0.001
_lock = threading.Lock()
_under_way = 0


def begin_sharing() -> None:
    """Something that may compute for long begins. Call `end_sharing` when it has ended."""
    _count(1)


def end_sharing() -> None:
    """One of these has ended."""
    _count(-1)


@contextmanager
def sharing() -> Iterator[None]:
    """Runs the block, which may compute for long."""
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

"""Backoff: how long a process waits before it repeats an attempt that ended by a fault of ours."""

from __future__ import annotations

import time

FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 30.0


class Faults:
    """The faults of one process: the longer they go on, the longer are the pauses. Used by one thread."""

    def __init__(self) -> None:
        self._began = self._last = float("-inf")

    def pause(self) -> float:
        """Notes a fault that happened now; returns how many seconds to wait.

        Half a second at first, then as long as the faults have gone on, so that pauses double, up to half a minute.
        Faults that are a minute apart have nothing to do with each other.
        """
        now = time.monotonic()
        if now - self._last > 2 * LONGEST_PAUSE_SECONDS:
            self._began = now
        self._last = now
        return min(max(now - self._began, FIRST_PAUSE_SECONDS), LONGEST_PAUSE_SECONDS)

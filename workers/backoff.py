"""Backoff: how long a process waits after a fault on our side before it tries again."""

from __future__ import annotations

import time

FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 30.0


class Faults:
    """The faults of one process: the longer they go on, the longer the pauses. Use it in one thread."""

    def __init__(self) -> None:
        self._began = self._last = float("-inf")

    def pause(self) -> float:
        """Notes that a fault happened now. Returns how many seconds to wait.

        The first pause is FIRST_PAUSE_SECONDS. Later ones are as long as the faults have gone on, so that pauses
        double, up to LONGEST_PAUSE_SECONDS. After twice LONGEST_PAUSE_SECONDS without a fault, the pauses begin anew.
        """
        now = time.monotonic()
        if now - self._last > 2 * LONGEST_PAUSE_SECONDS:
            self._began = now
        self._last = now
        return min(max(now - self._began, FIRST_PAUSE_SECONDS), LONGEST_PAUSE_SECONDS)

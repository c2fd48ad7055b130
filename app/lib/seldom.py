"""Saying now and then what happens all the time."""

from __future__ import annotations

import threading
import time


class Seldom:
    """Lets one of all that happens pass in so many seconds, in this process. Call it from any thread."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._next = 0.0
        self._lock = threading.Lock()

    def is_due(self) -> bool:
        """Whether this one may pass."""
        with self._lock:
            if (now := time.monotonic()) < self._next:
                return False
            self._next = now + self._seconds
            return True

"""Limits how often a process reports a frequent event."""

from __future__ import annotations

import threading
import time


class Seldom:
    """Lets one event pass per `seconds`, in this process. Call it from any thread."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._next = 0.0
        self._lock = threading.Lock()

    def is_due(self) -> bool:
        """Returns whether this event may pass. If so, no other passes for the next `seconds`."""
        with self._lock:
            if (now := time.monotonic()) < self._next:
                return False
            self._next = now + self._seconds
            return True

"""Caller limits: how many requests of one caller the threads of `web` serve at once.

Further requests of the caller queue.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict, deque
from typing import Any


class CallerLimits:
    """The turns of callers. A turn that ends passes to the same caller's longest waiting connection."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._callers: dict[Any, str] = {}  # the callers of connections that have a turn
        self._taken: Counter[str] = Counter()
        self._waiting: defaultdict[str, deque[Any]] = defaultdict(deque)

    def take(self, conn: Any, caller: str) -> bool:
        """Gives the connection a turn if its caller has one left. Returns whether it has a turn.

        Without a caller, a connection needs no turn.
        """
        with self._lock:
            return not caller or conn in self._callers or self._give(conn, caller)

    def wait(self, conn: Any, caller: str) -> bool:
        """Takes a turn for the connection, or queues the connection if none is free.

        Returns whether the connection has a turn. Call this only after `take` returned False.
        """
        with self._lock:
            has_turn = self._give(conn, caller)
            if not has_turn:
                self._waiting[caller].append(conn)
            return has_turn

    def end(self, conn: Any) -> Any | None:
        """Ends the connection's turn, if any. Returns the connection that gets the turn, or None."""
        with self._lock:
            caller = self._callers.pop(conn, None)
            if caller is None:
                return None
            self._taken[caller] -= 1
            following = self._waiting[caller].popleft() if caller in self._waiting else None
            if following is not None:
                self._give(following, caller)
            if not self._taken[caller]:
                del self._taken[caller]
            if not self._waiting.get(caller):
                self._waiting.pop(caller, None)
            return following

    def _give(self, conn: Any, caller: str) -> bool:
        is_free = self._taken[caller] < self._most
        if is_free:
            self._taken[caller] += 1
            self._callers[conn] = caller
        return is_free

"""Deadlines of many requests, kept by a single timer."""

from __future__ import annotations

import asyncio
import math
from collections import defaultdict
from typing import Protocol

# The longest wait in our own queues, for a connection or a thread. After that, the request fails as our fault. Added to
# the request's timeout, it must be shorter than the lease of its delivery.
MOST_QUEUED_SECONDS = 3


class Limited(Protocol):
    """An item with a deadline."""

    def expire(self) -> None:
        """Ends the item. `Deadlines` calls it once the time is up."""


class Deadlines:
    """Calls `expire` on each item when its time is up. Belongs to one event loop."""

    def __init__(self) -> None:
        # By time limit: items with the same limit expire in the order in which they began.
        self._groups: defaultdict[float, dict[Limited, float]] = defaultdict(dict)
        self._timer: asyncio.TimerHandle | None = None
        self._next = math.inf

    def begin(self, item: Limited, seconds: float) -> None:
        """Schedules the item to expire in `seconds`."""
        due = asyncio.get_running_loop().time() + seconds
        self._groups[seconds][item] = due
        if due < self._next:
            self._wake_at(due)

    def end(self, item: Limited, seconds: float) -> None:
        """Cancels `begin` with the same arguments. Harmless once the item has expired."""
        self._groups[seconds].pop(item, None)

    def _wake_at(self, due: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._next = due
        self._timer = asyncio.get_running_loop().call_at(due, self._expire) if due < math.inf else None

    def _expire(self) -> None:
        now = asyncio.get_running_loop().time()
        try:
            for group in list(self._groups.values()):
                while group and group[item := next(iter(group))] <= now:
                    del group[item]
                    item.expire()
        finally:  # an exception in one must not cost the others their deadline
            self._groups = defaultdict(dict, {seconds: group for seconds, group in self._groups.items() if group})
            self._wake_at(min((next(iter(group.values())) for group in self._groups.values()), default=math.inf))

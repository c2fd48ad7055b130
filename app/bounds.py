"""Bounds: what one actor, address, workspace or process may have, so that none takes the service from the others.

An actor is a token, a member or a visitor. An IPv6 /64 counts as one address. `docs/limits.md` lists every bound.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass

from app import metrics


@dataclass(frozen=True, slots=True)
class Bound:
    """At most `most` for each of whom it is for; `unit` says of what, and in which time."""

    name: str
    most: int
    unit: str

    def reached(self) -> None:
        """Counts that somebody has come up against it."""
        metrics.BOUNDS_REACHED.labels(self.name).inc()


class Places:
    """Of a bound on what each key has at one time, in this process: who has a place, has to leave it."""

    def __init__(self, bound: Bound) -> None:
        self._bound = bound
        self._taken: Counter[Hashable] = Counter()
        self._lock = threading.Lock()

    def take(self, key: Hashable) -> bool:
        """Takes a place, at once; False if the key has as many as it may have."""
        with self._lock:
            is_free = self._taken[key] < self._bound.most
            if is_free:
                self._taken[key] += 1
        if not is_free:
            self._bound.reached()
        return is_free

    def leave(self, key: Hashable) -> None:
        """Gives back one place that was taken."""
        with self._lock:
            self._taken[key] -= 1
            if self._taken[key] <= 0:
                del self._taken[key]


# Requests of web chats. Many visitors may share an address.
CHAT_REQUESTS_PER_VISITOR = Bound("chat_requests_per_visitor", 120, "requests a minute")
CHAT_REQUESTS_PER_ADDRESS = Bound("chat_requests_per_address", 1_200, "requests a minute")
CHAT_UPLOADS_PER_VISITOR = Bound("chat_uploads_per_visitor", 20, "files a minute")
NEW_VISITORS_PER_ADDRESS = Bound("new_visitors_per_address", 30, "visitors a minute")

ALL = tuple(value for value in list(globals().values()) if isinstance(value, Bound))

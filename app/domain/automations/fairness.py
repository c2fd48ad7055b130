"""Fairness: workspaces whose runs need much CPU time wait for each other; others do not wait.

In a batch of several workspaces, those with the least recent CPU time go first. Workspaces with much of it share a few
of a process's threads.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from app import bounds
from app.bounds import Places
from app.mailbox import Claimed

# How long CPU time counts: at least this long, at most twice.
SPAN_SECONDS = 10.0
# Shorter runs do not count, however many there are.
LEAST_SECONDS = 0.01
# A workspace with more CPU time than this within the span is heavy.
HEAVY_SECONDS = 0.1


class Turns:
    """The recent CPU seconds of each workspace in this process, from long runs only."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._latest: Counter[str] = Counter()
        self._before: Counter[str] = Counter()
        self._ends = 0.0

    @contextmanager
    def of(self, workspace_id: str) -> Iterator[None]:
        """Adds the CPU time of the block, if it is long."""
        began = time.thread_time()
        try:
            yield
        finally:
            seconds, now = time.thread_time() - began, time.monotonic()
            with self._lock:
                if now > self._ends:
                    self._before = self._latest if now - self._ends < SPAN_SECONDS else Counter()
                    self._latest, self._ends = Counter(), now + SPAN_SECONDS
                if seconds >= LEAST_SECONDS:
                    self._latest[workspace_id] += seconds  # type: ignore[assignment]

    def is_heavy(self, workspace_id: str) -> bool:
        """Whether the workspace has used much CPU time recently."""
        with self._lock:
            return self._latest[workspace_id] + self._before[workspace_id] > HEAVY_SECONDS

    def ordered(self, batch: Sequence[Claimed]) -> list[Claimed]:
        """Sorts the batch by the workspaces' CPU time. Stable within a workspace."""
        with self._lock:
            seconds = {each.owner: self._latest[each.owner] + self._before[each.owner] for each in batch}
        return sorted(batch, key=lambda each: seconds[each.owner])


class Room:
    """The threads for heavy workspaces. Remembers the workspaces that found no free thread."""

    def __init__(self) -> None:
        self._places = Places(bounds.RUNS_HEAVY)
        self._lock = threading.Lock()
        self._turned_away: set[str] = set()

    def enter(self, *workspace_ids: str) -> bool:
        """Takes a thread for these workspaces; False if none is free."""
        with self._lock:
            has_entered = self._places.take(None)
            if not has_entered:
                self._turned_away.update(workspace_ids)
            return has_entered

    def leave(self) -> set[str]:
        """Releases the thread. Returns the workspaces that found no free thread since the last release."""
        with self._lock:
            self._places.leave(None)
            turned_away, self._turned_away = self._turned_away, set()
            return turned_away

"""Fairness: workspaces whose runs compute for long wait for one another, and the others not for them.

In a batch with runs of several workspaces, those that have computed least lately go first. Workspaces that have
computed for long lately share few of a process's threads.
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

# How long computing counts, at least; at most twice as long.
SPAN_SECONDS = 10.0
# Runs that compute for less count for nothing, however many they are.
LEAST_SECONDS = 0.01
# A workspace that has computed for longer within this time is heavy.
HEAVY_SECONDS = 0.1


class Turns:
    """The seconds of CPU that each workspace has computed for lately in this process, by runs that did for long."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._latest: Counter[str] = Counter()
        self._before: Counter[str] = Counter()
        self._ends = 0.0

    @contextmanager
    def of(self, workspace_id: str) -> Iterator[None]:
        """Counts the seconds of CPU that the block takes, if they are many."""
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
        """Whether the workspace has computed for long lately."""
        with self._lock:
            return self._latest[workspace_id] + self._before[workspace_id] > HEAVY_SECONDS

    def ordered(self, batch: Sequence[Claimed]) -> list[Claimed]:
        """The batch, by what their workspaces have computed; of one workspace, as they were."""
        with self._lock:
            seconds = {each.owner: self._latest[each.owner] + self._before[each.owner] for each in batch}
        return sorted(batch, key=lambda each: seconds[each.owner])


class Room:
    """The threads for heavy workspaces. A workspace that comes in vain is named to a thread that leaves."""

    def __init__(self) -> None:
        self._places = Places(bounds.RUNS_HEAVY)
        self._lock = threading.Lock()
        self._turned_away: set[str] = set()

    def enter(self, *workspace_ids: str) -> bool:
        """Takes a thread for these workspaces; False if there is none."""
        with self._lock:
            has_entered = self._places.take(None)
            if not has_entered:
                self._turned_away.update(workspace_ids)
            return has_entered

    def leave(self) -> set[str]:
        """Gives the thread back; returns the workspaces that have come in vain since one was given back last."""
        with self._lock:
            self._places.leave(None)
            turned_away, self._turned_away = self._turned_away, set()
            return turned_away

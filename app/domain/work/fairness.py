"""Fairness: workspaces whose runs or broadcasts compute for long wait for one another, and the others not for them.

In a batch with runs of several workspaces, those that have computed least lately go first. Workspaces that have
computed for long lately share few of a process's threads, for broadcasts and runs together.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager

from app import bounds, mailbox
from app.bounds import Bound, Places
from app.mailbox import Claimed, Mail

# How long computing counts, at least; at most twice as long.
SPAN_SECONDS = 10.0
# Runs that compute for less count for nothing, however many they are.
LEAST_SECONDS = 0.01
# A workspace that has computed for longer within this time is heavy.
HEAVY_SECONDS = 0.1


class Turns:
    """The seconds of CPU that each workspace has computed for lately in this process, by work that took long."""

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
    """The threads that each key may have in this process. Mailboxes that come in vain wait until one is free."""

    def __init__(self, bound: Bound, most_rung: int | None = None) -> None:
        """`most_rung`: how many of the mailboxes that wait are rung for when a thread is free; None: all."""
        self._places = Places(bound)
        self._most_rung = most_rung
        self._lock = threading.Lock()
        self._turned_away: dict[Hashable, dict[tuple[Mail, str], None]] = {}

    @contextmanager
    def thread(self, key: Hashable, mail: Mail, *owners: str) -> Iterator[bool]:
        """Takes a thread of the key for these mailboxes; False if it has none, and then they are rung for later."""
        has_entered = self.enter(key, mail, *owners)
        try:
            yield has_entered
        finally:
            if has_entered:
                for turned_away in self.leave(key):
                    mailbox.hear(*turned_away)  # or the flag of its bell would keep it from ringing
                    mailbox.ring(*turned_away)

    def enter(self, key: Hashable, mail: Mail, *owners: str) -> bool:
        """Takes a thread of the key; False if it has none. Use `thread` where you can."""
        with self._lock:
            has_entered = self._places.take(key)
            if not has_entered:
                self._turned_away.setdefault(key, {}).update(dict.fromkeys((mail, owner) for owner in owners))
            return has_entered

    def leave(self, key: Hashable) -> list[tuple[Mail, str]]:
        """Gives the thread back; returns the mailboxes to ring for, those that have waited for longest."""
        with self._lock:
            self._places.leave(key)
            waiting = self._turned_away.pop(key, {})
            rung = list(waiting)[: self._most_rung]
            if left := list(waiting)[len(rung) :]:
                self._turned_away[key] = dict.fromkeys(left)
            return rung


# Which workspaces have kept this process busy lately, and the threads for those that have for long.
TURNS, HEAVY = Turns(), Room(bounds.RUNS_HEAVY)

"""Fairness: workspaces whose runs or broadcasts need much CPU time do not hold up the others.

In a batch of several workspaces, those with the least recent CPU time go first. Workspaces that used much CPU time
share a few of a process's threads, for runs and broadcasts together.
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

# How long CPU time counts: at least this long, and at most twice as long.
SPAN_SECONDS = 10.0
# Shorter work does not count, however often it happens.
LEAST_SECONDS = 0.01
# A workspace is heavy if it used more CPU time than this within the span.
HEAVY_SECONDS = 0.1


class Turns:
    """The recent CPU seconds of each workspace in this process, from long work only."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._latest: Counter[str] = Counter()
        self._before: Counter[str] = Counter()
        self._ends = 0.0

    @contextmanager
    def of(self, workspace_id: str) -> Iterator[None]:
        """Adds the CPU time of the block, if it took LEAST_SECONDS."""
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
        """Returns whether the workspace has used more than HEAVY_SECONDS of CPU time lately."""
        with self._lock:
            return self._latest[workspace_id] + self._before[workspace_id] > HEAVY_SECONDS

    def ordered(self, batch: Sequence[Claimed]) -> list[Claimed]:
        """Sorts the batch by the recent CPU time of its workspaces. Keeps the order within a workspace."""
        with self._lock:
            seconds = {each.owner: self._latest[each.owner] + self._before[each.owner] for each in batch}
        return sorted(batch, key=lambda each: seconds[each.owner])


class Room:
    """The threads that each key may use in this process. Remembers mailboxes that found none free."""

    def __init__(self, bound: Bound, most_rung: int | None = None) -> None:
        """`most_rung`: how many waiting mailboxes to ring for when a thread becomes free; None for all."""
        self._places = Places(bound)
        self._most_rung = most_rung
        self._lock = threading.Lock()
        self._turned_away: dict[Hashable, dict[tuple[Mail, str], None]] = {}

    @contextmanager
    def thread(self, key: Hashable, mail: Mail, *owners: str) -> Iterator[bool]:
        """Takes a thread of the key, or yields False and rings for the mailboxes once one is free."""
        has_entered = self.enter(key, mail, *owners)
        try:
            yield has_entered
        finally:
            if has_entered:
                for turned_away in self.leave(key):
                    mailbox.hear(*turned_away)  # otherwise the flag of its bell would suppress the ring
                    mailbox.ring(*turned_away)

    def enter(self, key: Hashable, mail: Mail, *owners: str) -> bool:
        """Takes a thread of the key. Prefer `thread`.

        Returns False if no thread is free: a later `leave` then returns the mailboxes, to be rung for.
        """
        with self._lock:
            has_entered = self._places.take(key)
            if not has_entered:
                self._turned_away.setdefault(key, {}).update(dict.fromkeys((mail, owner) for owner in owners))
            return has_entered

    def leave(self, key: Hashable) -> list[tuple[Mail, str]]:
        """Gives the thread back. Returns the mailboxes to ring for: those that have waited longest."""
        with self._lock:
            self._places.leave(key)
            waiting = self._turned_away.pop(key, {})
            rung = list(waiting)[: self._most_rung]
            if left := list(waiting)[len(rung) :]:
                self._turned_away[key] = dict.fromkeys(left)
            return rung


# The recent CPU time of workspaces in this process, and the threads that heavy workspaces share.
TURNS, HEAVY = Turns(), Room(bounds.RUNS_HEAVY)

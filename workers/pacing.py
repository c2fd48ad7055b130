"""Pacing: how many requests a process works on at once, and how long its desk waits between its cycles."""

from __future__ import annotations

import time

# The process

# Requests that a process works on at once, however busy it is.
LEAST_CAPACITY = 128
# Requests under way in a process at any moment, those of endpoints that hang included.
MOST_UNDER_WAY = 1000
# Requests that wait longer than this for the event loop show that the process works on too many.
MOST_LAG_SECONDS = 0.015
# After each cycle the slow lane sleeps this many cycle times, which are long while processors are scarce, so that late
# and slow deliveries leave them to others.
GIVING_WAY = 3
# Cycles in a row in which a mailbox filled its window, after which it is rung for: other processes may have room.
CALL_EVERY = 8

# An endpoint

# Requests under way for an endpoint that has the process to itself; one among others has its share of these, at least
# a quarter: more would make the cycles longer, and all wait for them.
MOST = 256
# Requests under way in the slow lane for one that does not answer quickly.
MOST_IN_SLOW_LANE = 16
# An answer that takes longer is slow, one that takes less is quick.
SLOW_SECONDS = 2.0
# Quick successes in a row after which an endpoint has recovered.
RECOVERED_AFTER = 10
# Mail that has waited for longer is a backlog's, where that of others is fresh.
BACKLOG_SECONDS = 1.0
# Half of that, so that an endpoint's own mail is not taken for the fresh mail of others while it turns into a backlog.
FRESH_SECONDS = BACKLOG_SECONDS / 2


class Pace:
    """How many requests, of all endpoints, the process works on at once: `capacity`.

    It grows while more are wanted and the event loop takes them up at once, and shrinks while they wait for the loop.
    More than the loop can work on would only open connections.
    """

    def __init__(self) -> None:
        self.capacity = LEAST_CAPACITY
        self._lag = 0.0

    @property
    def is_behind(self) -> bool:
        """Whether even the least capacity is too much, so that the process itself makes endpoints look slow."""
        return self.capacity == LEAST_CAPACITY and self._lag > MOST_LAG_SECONDS

    @property
    def can_grow(self) -> bool:
        """Whether the capacity is less than it can ever be."""
        return self.capacity < MOST_UNDER_WAY

    def keep(self, handed_over: float, *, is_short: bool) -> None:
        """Called by the loop when it takes up what it was handed then; `is_short`: more requests are wanted."""
        self._lag = time.monotonic() - handed_over
        if self._lag > MOST_LAG_SECONDS:
            self.capacity = max(LEAST_CAPACITY, self.capacity * 3 // 4)
        elif is_short:
            self.capacity = min(MOST_UNDER_WAY, self.capacity + 4)

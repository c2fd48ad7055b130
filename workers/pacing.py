"""Pacing: how many requests a process works on at once, and its rests after cycles and faults."""

from __future__ import annotations

import time

# The lowest capacity: a process may always work on this many requests at once, however busy it is.
LEAST_CAPACITY = 128
# How many requests a process may have in flight, including requests of endpoints that hang.
MOST_UNDER_WAY = 1000
# If requests wait longer than this for the event loop, the process works on too many.
MOST_LAG_SECONDS = 0.015
# After a cycle, the slow lane sleeps this many times as long as the cycle took. Cycles take long while processors are
# scarce, so late and slow deliveries leave the processors to others.
GIVING_WAY = 3
# After so many cycles in a row in which a mailbox filled its window, its bell rings: other processes may have room.
CALL_EVERY = 8

# How many requests an endpoint may have in flight if it has the process to itself. Otherwise, it gets a share, at least
# a quarter. Larger shares would make the cycles longer, and every endpoint waits for the end of a cycle.
MOST = 256
# How many requests an endpoint in the slow lane may have in flight while it answers slowly.
MOST_WHILE_SLOW = 16
# An answer that takes at least this long is slow; any other is quick.
SLOW_SECONDS = 2.0
# After so many quick successes in a row, an endpoint has recovered.
RECOVERED_AFTER = 10
# Mail that has waited for longer belongs to a backlog, if mail of others is fresh.
BACKLOG_SECONDS = 1.0
# Half of BACKLOG_SECONDS, so that an endpoint's own mail does not count as fresh while its backlog builds up.
FRESH_SECONDS = BACKLOG_SECONDS / 2
# The bounds of the pauses after faults on our side.
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.5, 30.0


class Pace:
    """How many requests of all endpoints the process works on at once: `capacity`.

    The capacity grows while more requests are wanted and the event loop begins them at once. It shrinks while they wait
    for the loop. Beyond what the loop can work on, more requests would only open connections.
    """

    def __init__(self) -> None:
        self.capacity = LEAST_CAPACITY
        self._lag = 0.0

    @property
    def is_behind(self) -> bool:
        """Whether even LEAST_CAPACITY is too much, so that the process itself makes endpoints look slow."""
        return self.capacity == LEAST_CAPACITY and self._lag > MOST_LAG_SECONDS

    @property
    def can_grow(self) -> bool:
        """Whether `keep` can still raise the capacity."""
        return self.capacity < MOST_UNDER_WAY

    def keep(self, handed_over: float, *, is_short: bool) -> None:
        """Adjusts the capacity. The loop calls this when it begins the requests that it was handed.

        `handed_over`: when it was handed these, on the monotonic clock. `is_short`: more requests are wanted.
        """
        self._lag = time.monotonic() - handed_over
        if self._lag > MOST_LAG_SECONDS:
            self.capacity = max(LEAST_CAPACITY, self.capacity * 3 // 4)
        elif is_short:
            self.capacity = min(MOST_UNDER_WAY, self.capacity + 4)


class Faults:
    """The faults of one process: the longer they go on, the longer the pauses. Use it in one thread."""

    def __init__(self) -> None:
        self._began = self._last = float("-inf")

    def pause(self) -> float:
        """Notes that a fault happened now. Returns how many seconds to wait.

        The first pause is FIRST_PAUSE_SECONDS. Later ones are as long as the faults have gone on, so that pauses
        double, up to LONGEST_PAUSE_SECONDS. After twice LONGEST_PAUSE_SECONDS without a fault, the pauses begin anew.
        """
        now = time.monotonic()
        if now - self._last > 2 * LONGEST_PAUSE_SECONDS:
            self._began = now
        self._last = now
        return min(max(now - self._began, FIRST_PAUSE_SECONDS), LONGEST_PAUSE_SECONDS)

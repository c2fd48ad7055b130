"""Windows: how many requests may be under way for one endpoint, by how it has answered of late."""

from __future__ import annotations

from enum import Enum

START = 8  # of an endpoint that is not known here
MOST = 256
MOST_SLOW = 16  # in the slow lane
QUICK_SECONDS = 1.0
SLOW_SECONDS = 2.0
RECOVERED_AFTER = 10  # quick answers in a row


class Pace(Enum):
    """How an endpoint has answered in the present window."""

    STEADY = "steady"
    SLOW = "slow"
    RECOVERED = "recovered"


class Window:
    """The requests under way for one endpoint, and how many there may be.

    Doubles with each round of quick successes while it is made full use of, and halves when a round has a failure
    or a slow answer. While a request has waited long for its answer it is 1, whatever came before. Times are those
    of one monotonic clock, in seconds.
    """

    __slots__ = ("_quick", "_shrunk_at", "_size", "_slow_lane", "_started", "answering")

    def __init__(self, *, slow_lane: bool) -> None:
        self.answering = False  # whether the endpoint has succeeded since it last failed, as far as is known here
        self._slow_lane = slow_lane
        self._size = 1 if slow_lane else START
        self._started: dict[str, float] = {}  # oldest first
        self._shrunk_at = 0.0
        self._quick = 0

    @property
    def under_way(self) -> int:
        return len(self._started)

    def room(self, now: float) -> int:
        size = 1 if self._is_waiting(now) and not self._slow_lane else self._size
        return max(0, size - len(self._started))

    def begin(self, delivery_id: str, now: float) -> None:
        self._started[delivery_id] = now

    def end(self, delivery_id: str, succeeded: bool, now: float) -> None:
        full = len(self._started) >= self._size
        started = self._started.pop(delivery_id)
        took = now - started
        self._quick = self._quick + 1 if succeeded and took < QUICK_SECONDS else 0
        if not succeeded or (took >= SLOW_SECONDS and not self._slow_lane):
            self._shrink(started, now)
        elif full:
            self._size = min(self._size + 1, MOST_SLOW if self._slow_lane else MOST)
        self.answering = succeeded

    def pace(self, now: float) -> Pace:
        if self._is_waiting(now):
            return Pace.SLOW
        return Pace.RECOVERED if self._quick >= RECOVERED_AFTER else Pace.STEADY

    def _is_waiting(self, now: float) -> bool:
        oldest = next(iter(self._started.values()), now)
        return now - oldest >= SLOW_SECONDS

    def _shrink(self, started: float, now: float) -> None:
        # Once for all that were under way together.
        if started >= self._shrunk_at:
            self._size = max(1, self._size // 2)
            self._shrunk_at = now

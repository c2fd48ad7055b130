"""Concurrency: how many requests each endpoint may have in flight, by how it answered lately."""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterable

from workers import pacing


class Window:
    """The requests in flight for one endpoint, and how many there may be.

    The window grows by one with each success while it is full. It halves for a failure, but only once for requests that
    were in flight together. In the fast lane, a slow answer counts as a failure, and no request begins while a slow
    answer is awaited.
    """

    __slots__ = (
        *("_awaited", "_full", "_quick", "_shrunk_at", "_size", "_slow", "_tolerates_slow"),
        *("answering", "started", "waited"),
    )

    def __init__(self, *, tolerates_slow: bool) -> None:
        self.answering = False  # whether the last attempt made here succeeded
        self.started: dict[Hashable, float] = {}  # when each request in flight began, by its claim; oldest first
        self.waited = 0.0  # how many seconds the last mail had been due
        self._tolerates_slow = tolerates_slow
        self._size = 1
        self._full = False  # whether the window was full when a request last began
        self._shrunk_at = 0.0
        self._quick = 0
        self._slow = False
        self._awaited: Hashable = None

    def room(self, now: float) -> int:
        """Returns how many more requests may begin."""
        if self.is_awaited(now) and not self._tolerates_slow:
            return 0
        return max(0, self._size - len(self.started))

    def is_awaited(self, now: float) -> bool:
        """Whether the oldest request has waited for its answer for SLOW_SECONDS."""
        return bool(self.started) and now - next(iter(self.started.values())) >= pacing.SLOW_SECONDS

    def turned_slow(self, now: float) -> bool:
        """Whether an answer was slow, or a request has waited for long. Reports each only once."""
        slow, self._slow = self._slow, False
        if self.is_awaited(now):
            oldest = next(iter(self.started))
            slow |= oldest != self._awaited
            self._awaited = oldest
        return slow

    def turned_quick(self) -> bool:
        """Whether RECOVERED_AFTER quick successes in a row have come since the last report.

        False while the last mail had been due for more than FRESH_SECONDS.
        """
        if self._quick < pacing.RECOVERED_AFTER or self.waited > pacing.FRESH_SECONDS:
            return False
        self._quick = 0
        return True

    def begin(self, request: Hashable, now: float, waited: float = 0.0) -> None:
        """Notes that a request begins. Its mail has been due for `waited` seconds."""
        self.started[request] = now
        self.waited = waited
        self._full = len(self.started) >= self._size

    def end(self, request: Hashable, succeeded: bool, seconds: float, now: float) -> None:
        """Notes that a request has ended after `seconds`. May grow or shrink the window."""
        began = self.started.pop(request)
        self._slow |= seconds >= pacing.SLOW_SECONDS
        self._quick = self._quick + 1 if succeeded and seconds < pacing.SLOW_SECONDS else 0
        if not succeeded or (seconds >= pacing.SLOW_SECONDS and not self._tolerates_slow):
            self._shrink(began, now)
        elif self._full:
            self._size = min(self._size + 1, self._most(seconds))
        self.answering = succeeded

    def _most(self, seconds: float) -> int:
        is_quick = seconds < pacing.SLOW_SECONDS
        if not self._tolerates_slow:
            return pacing.MOST
        return pacing.MOST // 4 if is_quick else pacing.MOST_WHILE_SLOW

    def _shrink(self, began: float, now: float) -> None:
        # Shrinks only once for requests that were in flight together.
        if began >= self._shrunk_at:
            self._size = max(1, self._size // 2)
            self._shrunk_at = now


class Windows:
    """The windows of all endpoints of a process, by identifier. Use it in one thread.

    A claim identifies a request: a process that was frozen for longer than a lease may send the same delivery again.
    """

    def __init__(self, *, tolerates_slow: bool) -> None:
        self._tolerates_slow = tolerates_slow
        self._windows: dict[str, Window] = {}
        self._busy: dict[str, Window] = {}
        self._ended: set[str] = set()
        self._fresh_at = 0.0  # when fresh mail was last claimed
        self.under_way = 0
        self.is_short = False  # whether an endpoint had to wait for capacity in the last call of `rooms`

    def rooms(self, endpoint_ids: Iterable[str], capacity: int, new: Iterable[str] = ()) -> dict[str, int]:
        """Returns how many more requests may begin for each endpoint. Omits endpoints without room.

        `new` endpoints get one request each first, from half of the room, so that a backlog of the others delays no new
        mail. `capacity` is how many requests the process can work on at once. Requests of an endpoint whose oldest
        request has waited for SLOW_SECONDS do not count. Half of the capacity is for endpoints whose last attempt
        succeeded, so that hanging endpoints, however many, cannot take it all.
        """
        now, busy = time.monotonic(), self._busy.values()
        working = [window for window in busy if not window.is_awaited(now)]
        left = min(capacity - _under_way(working), pacing.MOST_UNDER_WAY - self.under_way)
        unsure_left = min(
            capacity // 2 - _under_way(window for window in working if not window.answering),
            pacing.MOST_UNDER_WAY // 2 - _under_way(window for window in busy if not window.answering),
        )
        most_each = max(pacing.MOST // 4, pacing.MOST // max(1, len(self._busy)))
        rooms: dict[str, int] = {}
        self.is_short = left < capacity // 8
        if self.is_short:
            return rooms
        for those, most, kept in ((new, 1, left // 2), (endpoint_ids, most_each, 0)):
            for endpoint_id in those:
                if left <= kept:
                    self.is_short |= not kept  # very likely true, and checking all other endpoints would cost more
                    break
                window, given = self._of(endpoint_id), rooms.get(endpoint_id, 0)
                wanted = min(window.room(now), most, most_each - len(window.started)) - given
                room = min(wanted, left if window.answering else min(left, unsure_left))
                self.is_short |= room < wanted
                if room > 0:
                    rooms[endpoint_id] = given + room
                    left -= room
                    unsure_left -= 0 if window.answering else room
        return rooms

    def begin(self, endpoint_id: str, request: Hashable, waited: float = 0.0) -> None:
        """Notes that a request begins. Its mail has been due for `waited` seconds."""
        now, window = time.monotonic(), self._of(endpoint_id)
        self._busy[endpoint_id] = window
        window.begin(request, now, waited)
        if waited < pacing.FRESH_SECONDS:
            self._fresh_at = now
        self.under_way += 1

    def end(self, endpoint_id: str, request: Hashable, succeeded: bool, seconds: float | None = None) -> None:
        """Notes that a request has ended, after `seconds`; None: the time since it began."""
        now, window = time.monotonic(), self._windows[endpoint_id]
        window.end(request, succeeded, now - window.started[request] if seconds is None else seconds, now)
        self.under_way -= 1
        self._ended.add(endpoint_id)
        if not window.started:
            del self._busy[endpoint_id]

    def judge(self) -> tuple[set[str], set[str]]:
        """Returns the endpoints that turned slow, and the recovered endpoints, since the last call."""
        now = time.monotonic()
        looked_at = self._busy | {endpoint_id: self._windows[endpoint_id] for endpoint_id in self._ended}
        slow = {endpoint_id for endpoint_id, window in looked_at.items() if window.turned_slow(now)}
        recovered = set()
        if self._tolerates_slow:
            recovered = {id for id, window in looked_at.items() if window.turned_quick() and id not in slow}
        self._ended.clear()
        self._forget()
        return slow, recovered

    def backlogs(self) -> set[str]:
        """Returns the endpoints whose mail has waited for long while mail of others is fresh."""
        if self._tolerates_slow or time.monotonic() - self._fresh_at > pacing.FRESH_SECONDS:
            return set()
        return {endpoint_id for endpoint_id, window in self._busy.items() if window.waited > pacing.BACKLOG_SECONDS}

    def _of(self, endpoint_id: str) -> Window:
        window = self._windows.get(endpoint_id)
        if window is None:
            window = self._windows[endpoint_id] = Window(tolerates_slow=self._tolerates_slow)
        return window

    def _forget(self) -> None:
        # A forgotten window begins small again. So idle windows are kept until there are more than can ever be busy.
        if len(self._windows) > pacing.MOST_UNDER_WAY + len(self._busy):
            self._windows = dict(self._busy)


def _under_way(windows: Iterable[Window]) -> int:
    return sum(len(window.started) for window in windows)

"""Windows: how many requests may be under way for each endpoint, by how it has answered of late."""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterable

START = 1  # of an endpoint that is not known here
MOST_ALONE = 256  # of an endpoint while no other has anything under way in a process of the fast lane
MOST = 64  # of one among others: more makes the rounds longer, and all wait for them
MOST_IN_SLOW_LANE = 16  # of one that is not answered quickly; a backlog may have MOST there, too
MOST_UNDER_WAY = 1000  # for all endpoints of the process, half of them for those that are known to answer
QUICK_SECONDS = 1.0
SLOW_SECONDS = 2.0
RECOVERED_AFTER = 10  # quick successes in a row
BACKLOG_SECONDS = 1.0  # mail that has waited for longer is a backlog's, where that of others is fresh
FRESH_SECONDS = 0.5  # mail that has waited for less is fresh
TRUSTED_SECONDS = 1.0  # what is known of an endpoint for longer may not be so any more: other processes serve it too
REMEMBERED = 10_000  # endpoints without anything under way


class Window:
    """The requests under way for one endpoint, and how many there may be.

    Doubles with each round of successes that makes full use of it, and halves when a round has a failure. In the
    fast lane a slow answer counts like a failure, and nothing more is begun while one is awaited.
    """

    __slots__ = (
        *("_awaited", "_full", "_quick", "_shrunk_at", "_size", "_slow", "_slow_lane"),
        *("answering", "known_at", "started", "waited"),
    )

    def __init__(self, *, slow_lane: bool) -> None:
        self.answering = False  # whether the endpoint has succeeded since it last failed, as far as is known here
        self.known_at = 0.0  # when that was found out last
        self.started: dict[Hashable, float] = {}  # when each request under way began, oldest first
        self.waited = 0.0  # for how long the mail that was taken last had been due
        self._slow_lane = slow_lane
        self._size = 1 if slow_lane else START
        self._full = False  # whether it was made full use of when a request was last begun
        self._shrunk_at = 0.0
        self._quick = 0
        self._slow = False
        self._awaited: Hashable = None

    def room(self, now: float) -> int:
        if self.is_awaited(now) and not self._slow_lane:
            return 0
        return max(0, self._size - len(self.started))

    def is_awaited(self, now: float) -> bool:
        """Whether a request has been waiting for its answer for long."""
        return bool(self.started) and now - next(iter(self.started.values())) >= SLOW_SECONDS

    def turned_slow(self, now: float) -> bool:
        """Whether an answer was slow, or one is awaited for long; each is told once."""
        slow, self._slow = self._slow, False
        if self.is_awaited(now):
            oldest = next(iter(self.started))
            slow |= oldest != self._awaited
            self._awaited = oldest
        return slow

    def turned_quick(self) -> bool:
        """Whether there were so many quick successes in a row since this was last told."""
        if self._quick < RECOVERED_AFTER or self.waited > FRESH_SECONDS:
            return False
        self._quick = 0
        return True

    def begin(self, request: Hashable, now: float, waited: float = 0.0) -> None:
        self.started[request] = now
        self.known_at = now
        self.waited = waited
        self._full = len(self.started) >= self._size

    def end(self, request: Hashable, succeeded: bool, seconds: float, now: float) -> None:
        began = self.started.pop(request)
        self._slow |= seconds >= SLOW_SECONDS
        self._quick = self._quick + 1 if succeeded and seconds < QUICK_SECONDS else 0
        if not succeeded or (seconds >= SLOW_SECONDS and not self._slow_lane):
            self._shrink(began, now)
        elif self._full:
            self._size = min(self._size + 1, self._most(seconds))
        self.answering, self.known_at = succeeded, now

    def _most(self, seconds: float) -> int:
        if not self._slow_lane:
            return MOST_ALONE
        return MOST if seconds < QUICK_SECONDS else MOST_IN_SLOW_LANE

    def _shrink(self, began: float, now: float) -> None:
        # Once for all that were under way together.
        if began >= self._shrunk_at:
            self._size = max(1, self._size // 2)
            self._shrunk_at = now


class Windows:
    """Those of all endpoints of a process, by identifier. Used by one thread.

    A request is named by the claim it is made under: a process that was frozen past a lease may make another for the
    same delivery.
    """

    def __init__(self, *, slow_lane: bool) -> None:
        self._slow_lane = slow_lane
        self._windows: dict[str, Window] = {}
        self._busy: dict[str, Window] = {}
        self._ended: set[str] = set()
        self._fresh_at = 0.0  # when mail that had not waited was last taken
        self.under_way = 0
        self.is_short = False  # whether somebody had to wait for `most`, when rooms were last asked for

    def rooms(self, endpoint_ids: Iterable[str], most: int) -> dict[str, int]:
        """How many more requests may begin for each of the endpoints, none left out but those that may have none.

        `most` is how many the process can work on at once; those of endpoints that let one wait for long are no work.
        Half of it is for endpoints that are known to answer, so that however many hang, they do not take everything.
        """
        now, busy = time.monotonic(), self._busy.values()
        working = [window for window in busy if not window.is_awaited(now)]
        left = min(most - _under_way(working), MOST_UNDER_WAY - self.under_way)
        unsure_left = min(
            most // 2 - _under_way(window for window in working if not window.answering),
            MOST_UNDER_WAY // 2 - _under_way(window for window in busy if not window.answering),
        )
        most_each = max(MOST, MOST_ALONE // max(1, len(self._busy)))
        rooms: dict[str, int] = {}
        self.is_short = left < most // 8
        if self.is_short:
            return rooms
        for endpoint_id in list(endpoint_ids):
            if not left:
                self.is_short = True  # as good as sure, and to look at all the others costs more than to know
                break
            window = self._of(endpoint_id)
            wanted = min(window.room(now), most_each - len(window.started))
            room = min(wanted, left if window.answering else min(left, unsure_left))
            self.is_short |= room < wanted
            if room > 0:
                rooms[endpoint_id] = room
                left -= room
                unsure_left -= 0 if window.answering else room
        return rooms

    def answering(self, endpoint_ids: Iterable[str]) -> set[str]:
        """Those that are known to have answered lately."""
        oldest = time.monotonic() - TRUSTED_SECONDS
        windows = {endpoint_id: self._of(endpoint_id) for endpoint_id in endpoint_ids}
        return {id for id, window in windows.items() if window.answering and window.known_at >= oldest}

    def begin(self, endpoint_id: str, request: Hashable, answering: bool, waited: float = 0.0) -> None:
        """`waited`: for how many seconds the mail had been due."""
        now, window = time.monotonic(), self._of(endpoint_id)
        self._busy[endpoint_id] = window
        window.begin(request, now, waited)
        if waited < FRESH_SECONDS:
            self._fresh_at = now
        window.answering = answering
        self.under_way += 1

    def end(self, endpoint_id: str, request: Hashable, succeeded: bool, seconds: float) -> bool:
        """Whether there may be mail that had to wait for this, because of what was not sure of the endpoint."""
        window = self._windows[endpoint_id]
        was_sure = window.answering
        window.end(request, succeeded, seconds, time.monotonic())
        self.under_way -= 1
        self._ended.add(endpoint_id)
        if not window.started:
            del self._busy[endpoint_id]
        return not (was_sure and succeeded)

    def judge(self) -> tuple[set[str], set[str]]:
        """The endpoints that are slow, and those that have recovered, by what ended or waited since the last time."""
        now = time.monotonic()
        looked_at = self._busy | {endpoint_id: self._windows[endpoint_id] for endpoint_id in self._ended}
        slow = {endpoint_id for endpoint_id, window in looked_at.items() if window.turned_slow(now)}
        recovered = set()
        if self._slow_lane:
            recovered = {id for id, window in looked_at.items() if window.turned_quick() and id not in slow}
        self._ended.clear()
        self._forget()
        return slow, recovered

    def backlogs(self) -> set[str]:
        """The endpoints whose mail has waited for long, while that of others does not have to."""
        if self._slow_lane or time.monotonic() - self._fresh_at > FRESH_SECONDS:
            return set()
        return {endpoint_id for endpoint_id, window in self._busy.items() if window.waited > BACKLOG_SECONDS}

    def _of(self, endpoint_id: str) -> Window:
        window = self._windows.get(endpoint_id)
        if window is None:
            window = self._windows[endpoint_id] = Window(slow_lane=self._slow_lane)
        return window

    def _forget(self) -> None:
        if len(self._windows) > REMEMBERED + len(self._busy):
            self._windows = dict(self._busy)


def _under_way(windows: Iterable[Window]) -> int:
    return sum(len(window.started) for window in windows)

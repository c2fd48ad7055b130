"""The desk of a worker process: a thread that does the database work of requests, which an event loop keeps under way.

The desk works in cycles: each records all that has come back and claims more, so that many requests share statements.
"""

from __future__ import annotations

import asyncio
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from typing import Generic, TypeVar

import structlog
import uvloop

from app.channels.base import Request
from app.config import settings
from app.database import DatabaseAway
from app.lib import vitals
from app.outbound import Answer, Outbound
from workers import pacing

log = structlog.get_logger(__name__)

# How long requests under way may take once the process is to end; then they fail as ours, which spends no attempt.
GRACE_SECONDS = 15.0
AWAY_SECONDS = 1.0  # after the database was found to be away
BUSY_SECONDS = 0.02  # after a row was found locked
# An end of a pause that is further away is looked at again: threads can wait for no more than some years.
MOST_REST_SECONDS = 3600.0
MOST_NEW = 100  # owners that wait for their first room in memory, where nothing new can pass all of them
MOST_BUSY = 50  # tries at a row that stays locked

T = TypeVar("T")


class Desk(ABC, Generic[T]):
    """Call `wake` when an owner has mail, `stop` before the process ends. Its threads start with the first wake.

    T is the outcome of a request. `note` may also be called in the loop's thread, and `ask` only there.
    """

    def __init__(self, timeout_seconds: float) -> None:
        self.bells: deque[str] = deque()  # owners that it was woken for since the desk last looked
        self.new: dict[str, None] = {}  # owners that it was woken for since they last had room
        self.is_stopping = threading.Event()
        self.loop = uvloop.new_event_loop()
        self.outbound: Outbound
        self._timeout_seconds = timeout_seconds
        self._outcomes: deque[T] = deque()
        self._news = threading.Event()
        self._started = threading.Lock()
        self._thread: threading.Thread | None = None

    @property
    @abstractmethod
    def is_busy(self) -> bool:
        """Whether any request is under way, or its outcome not recorded."""

    @abstractmethod
    def claim(self) -> None:
        """Claims what there is room for, and hands it to the loop."""

    @abstractmethod
    def record(self, outcomes: Sequence[T]) -> Sequence[T]:
        """Records the outcomes; returns those that have to be recorded later."""

    @abstractmethod
    def broken(self, outcome: T) -> T:
        """The final outcome of what `outcome` cannot be recorded for, with nothing in it that anybody else said."""

    @abstractmethod
    def end(self, outcome: T) -> None:
        """The outcome has been recorded, or never will be."""

    @abstractmethod
    def leave(self) -> None:
        """The process ends: has others take over what this one was woken for."""

    def pause(self) -> float | None:
        """For how many seconds the desk may sleep if there is no news; None: for any time."""
        return None

    def wake(self, *owners: str) -> None:
        """Sends what the owners have, soon, until there is no more. Waits a moment while it has no room."""
        self._start()
        self.bells.extend(owners)
        self._news.set()
        pacing.hold_back(lambda: len(self.new) + len(self.bells) > MOST_NEW)

    def stop(self) -> None:
        """Claims nothing more; returns when every request under way has ended and is recorded."""
        self.is_stopping.set()
        self._news.set()
        if self._thread is not None:
            self.loop.call_soon_threadsafe(self.loop.call_later, GRACE_SECONDS, self._close)
            self._thread.join()

    def note(self, *outcomes: T) -> None:
        """Outcomes for the desk to record."""
        self._outcomes.extend(outcomes)
        self.look_again()

    def ask(self, request: Request, most_bytes: int, timeout_seconds: float) -> asyncio.Future[Answer]:
        """Sends the request once and reads at most `most_bytes` of the answer. Raises ValueError for a bad address."""
        return self.outbound.request(
            request.method,
            request.address,
            request.body,
            request.headers,
            most_bytes=most_bytes,
            timeout_seconds=timeout_seconds,
        )

    def look_again(self) -> None:
        """Has the desk make another cycle at once."""
        self._news.set()

    def _start(self) -> None:
        with self._started:
            if self._thread is None and not self.is_stopping.is_set():
                configured = settings()
                self.outbound = Outbound(
                    timeout_seconds=self._timeout_seconds,
                    allowed_networks=configured.webhook_allowed_networks,
                    ca_file=configured.webhook_ca_file,
                )
                vitals.start_loop(self.loop, "requests")
                self._thread = vitals.start(self._work, "desk")

    def _work(self) -> None:
        while not self.is_stopping.is_set() or self.is_busy or self._outcomes:
            try:
                self._rest()
                self._record()
                if not self.is_stopping.is_set():
                    self.claim()
            except DatabaseAway as error:
                log.warning("desk.waits_for_database", desk=type(self).__name__, error=str(error).strip())
                self._try_again()
            except Exception:
                log.exception("desk.broke", desk=type(self).__name__)
                self._try_again()
        self.leave()
        self.loop.call_soon_threadsafe(self._close)

    def _rest(self) -> None:
        pause = None if self.is_stopping.is_set() else self.pause()
        self._news.wait(None if pause is None else min(pause, MOST_REST_SECONDS))
        self._news.clear()

    def _close(self) -> None:
        self._closing = self.loop.create_task(self.outbound.close())

    def _try_again(self) -> None:
        time.sleep(AWAY_SECONDS)
        self._news.set()

    def _record(self) -> None:
        """Records what has come back. What cannot be recorded yet stays for the next cycle."""
        outcomes = list(self._outcomes)
        if not outcomes:
            return
        later = self._recorded_later(outcomes)
        kept = {id(outcome) for outcome in later}
        for outcome in outcomes:
            self._outcomes.popleft()
            if id(outcome) not in kept:
                self.end(outcome)
        if later:
            self._outcomes.extend(later)
            time.sleep(BUSY_SECONDS)
            self._news.set()

    def _recorded_later(self, outcomes: Sequence[T]) -> Sequence[T]:
        try:
            return self.record(outcomes)
        except DatabaseAway:
            raise
        except Exception:
            # One of them cannot be recorded, which must not keep the others.
            log.exception("desk.batch_not_recorded", desk=type(self).__name__, outcomes=len(outcomes))
        later: list[T] = []
        for outcome in outcomes:
            try:
                later += self.record([outcome])
            except DatabaseAway:
                raise
            except Exception:
                log.exception("desk.outcome_not_recorded", desk=type(self).__name__, outcome=repr(outcome))
                self._record_broken(self.broken(outcome))
        return later

    def _record_broken(self, outcome: T) -> None:
        for _ in range(MOST_BUSY):
            try:
                if not self.record([outcome]):
                    return
            except DatabaseAway:
                raise
            except Exception:
                break
            time.sleep(BUSY_SECONDS)
        log.error("desk.outcome_lost", desk=type(self).__name__)  # its lease ends by itself

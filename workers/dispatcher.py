"""The dispatcher of a worker process: a thread that does the database work for many requests.

An event loop in another thread makes the requests, and never waits for the database. The dispatcher works in cycles.
Each cycle records everything that has come back, then claims more for all owners whose bells rang, so that many
requests share few statements.
"""

from __future__ import annotations

import asyncio
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

import structlog
import uvloop

from app.channels.base import Request
from app.config import settings
from app.database import DatabaseAway
from app.lib import vitals
from app.mailbox import Claimed, Found, Held, Mail
from app.outbound import Answer, Outbound
from workers.owners import Owners

log = structlog.get_logger(__name__)

# Seconds to wait after a cycle, so that outcomes and bells share the statements of the next cycle.
GATHERING_SECONDS = 0.005
# How long requests in flight may take once the process is to end. Requests that take longer fail as a fault of ours,
# which spends no attempt.
GRACE_SECONDS = 15.0
AWAY_SECONDS = 1.0  # the pause before retrying while the database is unavailable
BUSY_SECONDS = 0.02  # the pause before retrying to record a row that was locked
MOST_REST_SECONDS = 3600.0  # the longest rest between cycles: a thread cannot wait for infinitely many seconds
MOST_NEW = 100
MOST_BUSY = 50  # the most tries to record a row that stays locked

D = TypeVar("D", bound=Held)
T = TypeVar("T", bound=Held)


class Dispatcher(ABC, Generic[D, T]):
    """The threads that claim a kind of mail, send it, and record the outcomes.

    Call `wake` when an owner has mail, and `stop` before the process ends. The threads start with the first `wake`. D
    is the type of a dispatch, and T the type of its outcome. Call `send` and `ask` only on the loop's thread, and
    `note` on either thread.
    """

    # Whether requests may go to `settings().plain_addresses`: providers without TLS.
    asks_providers = False

    def __init__(self, mail: Mail, timeout_seconds: float) -> None:
        self.mail = mail
        self.owners = Owners(mail)
        self.is_stopping = threading.Event()
        self.loop = uvloop.new_event_loop()
        self.outbound: Outbound
        self._timeout_seconds = timeout_seconds
        self._under_way: set[tuple[str, int]] = set()  # the claims whose requests are in flight
        self._outcomes: deque[T] = deque()  # outcomes to record
        self._news = threading.Event()
        self._started = threading.Lock()
        self._thread: threading.Thread | None = None

    @abstractmethod
    def rooms(self) -> Mapping[str, int]:
        """Returns how many more requests may begin for each awake owner. Omits owners without room."""

    @abstractmethod
    def claim(self, rooms: Mapping[str, int]) -> Found[D, T]:
        """Claims up to `rooms` rows of each owner."""

    @abstractmethod
    def begin(self, claimed: Claimed) -> None:
        """Occupies room of the row's owner. Called just before the row is sent."""

    @abstractmethod
    def send(self, dispatch: D) -> None:
        """Sends the row, and notes an outcome in any case. Never waits, never raises."""

    @abstractmethod
    def record(self, outcomes: Sequence[T]) -> Sequence[T]:
        """Records the outcomes. Returns the outcomes that have to be recorded later."""

    @abstractmethod
    def broken(self, outcome: T) -> T:
        """Returns the outcome to record instead if `outcome` cannot be recorded.

        The returned outcome contains nothing that came from outside.
        """

    @abstractmethod
    def end(self, outcome: T) -> None:
        """Frees the owner's room. Called once the outcome is recorded, or if it never can be."""

    def gather(self, cycle_seconds: float) -> None:
        """Waits for outcomes and bells to gather, after a cycle of `cycle_seconds`."""
        time.sleep(GATHERING_SECONDS)

    @property
    def grace_seconds(self) -> float:
        """How many seconds requests may still take once the process is to end."""
        return GRACE_SECONDS

    @property
    def most_new(self) -> int:
        """How many owners may wait in memory for their first request, before `wake` holds bells back."""
        return MOST_NEW

    def wake(self, *owners: str) -> None:
        """Has the dispatcher send the owners' mail soon, until none is left.

        Waits briefly first if more than `most_new` owners wait already.
        """
        self._start()
        self.owners.ring(owners)
        self._news.set()
        self.owners.hold_back(self.most_new)

    def begin_to_stop(self) -> None:
        """Claims nothing more. Requests in flight have `grace_seconds` to end. Safe to repeat."""
        self.is_stopping.set()
        self._news.set()
        if self._thread is not None:
            self.loop.call_soon_threadsafe(self.loop.call_later, self.grace_seconds, self._close)

    def stop(self) -> None:
        """Claims nothing more. Returns when every request in flight has ended and is recorded."""
        self.begin_to_stop()
        if self._thread is not None:
            self._thread.join()

    def note(self, *outcomes: T) -> None:
        """Queues outcomes for the dispatcher to record."""
        self._outcomes.extend(outcomes)
        self.look_again()

    def ask(self, request: Request, most_bytes: int, timeout_seconds: float) -> asyncio.Future[Answer]:
        """Sends the request once, reading at most `most_bytes`. Raises ValueError for a bad address."""
        return self.outbound.request(
            request.method,
            request.address,
            request.body,
            request.headers,
            most_bytes=most_bytes,
            timeout_seconds=timeout_seconds,
        )

    def look_again(self) -> None:
        """Has the dispatcher make another cycle at once."""
        if not self._news.is_set():
            self._news.set()

    def _start(self) -> None:
        with self._started:
            if self._thread is None and not self.is_stopping.is_set():
                configured = settings()
                self.outbound = Outbound(
                    timeout_seconds=self._timeout_seconds,
                    allowed_networks=configured.webhook_allowed_networks,
                    ca_file=configured.webhook_ca_file,
                    plain_addresses=configured.plain_addresses if self.asks_providers else (),
                )
                vitals.start_loop(self.loop, "requests")
                self._thread = vitals.start(self._work, "dispatcher")

    def _work(self) -> None:
        while not self.is_stopping.is_set() or self._under_way or self._outcomes:
            try:
                self._rest()
                began = time.monotonic()
                self._record()
                if not self.is_stopping.is_set():
                    self._fill_rooms()
            except DatabaseAway as error:
                log.warning("dispatcher.waits_for_database", dispatcher=type(self).__name__, error=str(error).strip())
                self._try_again()
            except Exception:
                log.exception("dispatcher.broke", dispatcher=type(self).__name__)
                self._try_again()
            else:
                self.gather(time.monotonic() - began)
        self.owners.leave()
        self.loop.call_soon_threadsafe(self._close)

    def _rest(self) -> None:
        """Waits until `wake` or `look_again` is called, or until something is due."""
        if self._outcomes:
            pause = BUSY_SECONDS
        else:
            pause = MOST_REST_SECONDS if self.is_stopping.is_set() else self.owners.rest_seconds()
        self._news.wait(min(pause, MOST_REST_SECONDS))
        self._news.clear()

    def _close(self) -> None:
        self._closing = self.loop.create_task(self.outbound.close())

    def _try_again(self) -> None:
        time.sleep(AWAY_SECONDS)
        self._news.set()

    def _fill_rooms(self) -> None:
        self.owners.listen()
        rooms = self.rooms()
        if not rooms:
            return
        self.owners.hear(rooms)
        found = self.claim(rooms)
        for dispatch in found.dispatches:
            self._under_way.add(dispatch.claimed.key)
            self.begin(dispatch.claimed)
        self.owners.looked_into(rooms, found.more, found.pauses)
        if found.settled:
            self.note(*found.settled)
        if found.dispatches:
            self.loop.call_soon_threadsafe(self._send_all, found.dispatches)
        if len(found.dispatches) < sum(rooms.values()) and self.owners.awake:
            self.look_again()  # others may still use the room, and perhaps no outcome comes to start the next cycle

    def _send_all(self, dispatches: Sequence[D]) -> None:
        for dispatch in dispatches:
            self.send(dispatch)

    def _record(self) -> None:
        """Records the outcomes that have come back. Keeps outcomes of locked rows for the next cycle."""
        outcomes = list(self._outcomes)
        if not outcomes:
            return
        later = self._recorded_later(outcomes)
        kept = {id(outcome) for outcome in later}
        for outcome in outcomes:
            self._outcomes.popleft()
            if id(outcome) not in kept and outcome.claimed.key in self._under_way:
                self._under_way.remove(outcome.claimed.key)
                self.end(outcome)
        self._outcomes.extend(later)

    def _recorded_later(self, outcomes: Sequence[T]) -> Sequence[T]:
        try:
            return self.record(outcomes)
        except DatabaseAway:
            raise
        except Exception:
            # One of the outcomes cannot be recorded. Recording them one by one saves the others.
            log.exception("dispatcher.batch_not_recorded", dispatcher=type(self).__name__, outcomes=len(outcomes))
        later: list[T] = []
        for outcome in outcomes:
            try:
                later += self.record([outcome])
            except DatabaseAway:
                raise
            except Exception:
                log.exception("dispatcher.outcome_not_recorded", dispatcher=type(self).__name__, outcome=repr(outcome))
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
        log.error("dispatcher.outcome_lost", dispatcher=type(self).__name__)  # the row's lease expires on its own

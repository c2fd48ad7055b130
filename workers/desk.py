"""The desk of a worker process: a thread that does the database work of requests, which an event loop keeps under way.

The desk works in cycles: each records all that has come back and claims more for all owners that were rung for, so that
many requests share few statements. The loop has a thread of its own, which never waits for the database.
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

# After a cycle, so that outcomes and bells share the statements of the next.
GATHERING_SECONDS = 0.005
# How long requests under way may take once the process is to end; then they fail as ours, which spends no attempt.
GRACE_SECONDS = 15.0
AWAY_SECONDS = 1.0  # after the database was found to be away
BUSY_SECONDS = 0.02  # after a row was found locked
MOST_REST_SECONDS = 3600.0  # without news; threads can wait for no more than some years
MOST_NEW = 100
MOST_BUSY = 50  # tries at a row that stays locked

D = TypeVar("D", bound=Held)
T = TypeVar("T", bound=Held)


class Desk(ABC, Generic[D, T]):
    """Call `wake` when an owner has mail, `stop` before the process ends. Its threads start with the first wake.

    D is what is sent, T what came of it. `note` may also be called in the loop's thread, `send` and `ask` only there.
    """

    # Whether it may dial `plain_addresses`.
    asks_providers = False

    def __init__(self, mail: Mail, timeout_seconds: float) -> None:
        self.mail = mail
        self.owners = Owners(mail)
        self.is_stopping = threading.Event()
        self.loop = uvloop.new_event_loop()
        self.outbound: Outbound
        self._timeout_seconds = timeout_seconds
        self._under_way: set[tuple[str, int]] = set()  # the claims that requests are under way for
        self._outcomes: deque[T] = deque()  # to be recorded
        self._news = threading.Event()
        self._started = threading.Lock()
        self._thread: threading.Thread | None = None

    @abstractmethod
    def rooms(self) -> Mapping[str, int]:
        """How many more requests may begin for the owners that are awake. Omits those that may begin none."""

    @abstractmethod
    def claim(self, rooms: Mapping[str, int]) -> Found[D, T]:
        """Claims up to that many rows of each owner."""

    @abstractmethod
    def begin(self, claimed: Claimed) -> None:
        """The row is about to be sent, and takes room of its owner."""

    @abstractmethod
    def send(self, dispatch: D) -> None:
        """Sends it and notes the outcome, which comes in any case. Never waits and never raises."""

    @abstractmethod
    def record(self, outcomes: Sequence[T]) -> Sequence[T]:
        """Records the outcomes; returns those that have to be recorded later."""

    @abstractmethod
    def broken(self, outcome: T) -> T:
        """The final outcome of what `outcome` cannot be recorded for, with nothing in it that anybody else said."""

    @abstractmethod
    def end(self, outcome: T) -> None:
        """The outcome of a row that had begun has been recorded, or never will be. Makes room of its owner."""

    def gather(self, cycle_seconds: float) -> None:
        """Waits for outcomes and bells to gather, after a cycle that took so long."""
        time.sleep(GATHERING_SECONDS)

    @property
    def grace_seconds(self) -> float:
        """How long requests may still take once the process is to end."""
        return GRACE_SECONDS

    @property
    def most_new(self) -> int:
        """How many owners may wait in memory for their first request, where nothing new can pass all of them."""
        return MOST_NEW

    def wake(self, *owners: str) -> None:
        """Sends what the owners have, soon, and until there is no more. Waits a moment where many wait already."""
        self._start()
        self.owners.ring(owners)
        self._news.set()
        self.owners.hold_back(self.most_new)

    def begin_to_stop(self) -> None:
        """Claims nothing more, and gives the requests under way their time to end. Safe to repeat."""
        self.is_stopping.set()
        self._news.set()
        if self._thread is not None:
            self.loop.call_soon_threadsafe(self.loop.call_later, self.grace_seconds, self._close)

    def stop(self) -> None:
        """Claims nothing more; returns when every request under way has ended and is recorded."""
        self.begin_to_stop()
        if self._thread is not None:
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
                self._thread = vitals.start(self._work, "desk")

    def _work(self) -> None:
        while not self.is_stopping.is_set() or self._under_way or self._outcomes:
            try:
                self._rest()
                began = time.monotonic()
                self._record()
                if not self.is_stopping.is_set():
                    self._fill_rooms()
            except DatabaseAway as error:
                log.warning("desk.waits_for_database", desk=type(self).__name__, error=str(error).strip())
                self._try_again()
            except Exception:
                log.exception("desk.broke", desk=type(self).__name__)
                self._try_again()
            else:
                self.gather(time.monotonic() - began)
        self.owners.leave()
        self.loop.call_soon_threadsafe(self._close)

    def _rest(self) -> None:
        """Waits for news, or until something is due."""
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
        """Claims what there is room for, and hands it to the loop."""
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
            self.look_again()  # room is left for others, and no outcome need come that would lead to the next cycle

    def _send_all(self, dispatches: Sequence[D]) -> None:
        for dispatch in dispatches:
            self.send(dispatch)

    def _record(self) -> None:
        """Records what has come back. What cannot be recorded yet stays for the next cycle."""
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

"""The sender of a worker process: keeps a window of requests under way for each endpoint that has mail.

One thread, the desk, does the database work in cycles: each records all outcomes that have come back and claims for
all endpoints that have bells, so that many deliveries share few statements. The requests share an event loop and a
connection pool in a second thread, which never waits for the database. The desk never waits for a row lock.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial

import structlog
import uvloop

from app import mailbox, metrics
from app.config import settings
from app.database import DatabaseAway
from app.domain.deliveries import attempts, lanes
from app.domain.deliveries.attempts import Dispatch, Outcome
from app.lib import clock, vitals
from app.mailbox import Mail
from app.outbound import Answer, Outbound, Reason, failed
from workers import pacing
from workers.backoff import Faults
from workers.concurrency import Windows
from workers.desk import MOST_REST_SECONDS
from workers.pacing import Pace

log = structlog.get_logger(__name__)

PAUSE_SECONDS = 1.0  # after the database was found to be away


class Sender:
    """Call `wake` when an endpoint has mail, `stop` before the process ends. Its threads start with the first wake."""

    def __init__(self, lane: Mail) -> None:
        self._lane = lane
        self._bells: deque[str] = deque()  # endpoints that it was woken for since the desk last looked
        # Endpoints whose mailboxes may have mail, and how often in a row each filled its window.
        self._awake: dict[str, int] = {}
        # Those of them that were rung for since they last had room.
        self._new: dict[str, None] = {}
        # Endpoints whose limit is used up, and when it allows more, on the monotonic clock.
        self._paused: dict[str, float] = {}
        self._rung: set[str] = set()  # endpoints whose bells are not heard yet
        self._windows = Windows(slow_lane=lane is lanes.SLOW)
        self._outcomes: deque[Outcome] = deque()
        self._faults = Faults()  # used by the loop's thread
        self._news = threading.Event()
        self._stopping = threading.Event()
        self._started = threading.Lock()
        self._desk: threading.Thread | None = None
        self._loop = uvloop.new_event_loop()
        self._pace = Pace()

    def wake(self, *endpoint_ids: str) -> None:
        """Looks into the mailboxes of the endpoints soon, until they are empty. Waits a moment while it has no room."""
        self._start()
        self._bells.extend(endpoint_ids)
        self._news.set()
        pacing.hold_back(lambda: len(self._new) + len(self._bells) > self._pace.capacity // 2)

    def stop(self) -> None:
        """Claims nothing more; returns when every attempt under way has ended and is recorded."""
        self._stopping.set()
        self._news.set()
        if self._desk is not None:
            self._desk.join()

    def _start(self) -> None:
        with self._started:
            if self._desk is None and not self._stopping.is_set():
                vitals.start_loop(self._loop, "requests")
                self._desk = vitals.start(self._work, "desk")

    def _work(self) -> None:
        outbound = _outbound()
        while not self._stopping.is_set() or self._windows.under_way or self._outcomes:
            self._news.wait(self._paused_seconds())
            self._news.clear()
            began = time.monotonic()
            try:
                self._record()
                if not self._stopping.is_set():
                    self._listen()
                    self._change_lanes()
                    self._claim(outbound)
            except DatabaseAway as error:
                log.warning("sender.waits_for_database", error=str(error).strip())
                self._try_again()
            except Exception:
                log.exception("sender.broke")
                self._try_again()
            else:
                self._gather(time.monotonic() - began)
        self._listen()
        self._hear(self._rung)  # so that others can be rung for what is left
        with suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(outbound.close(), self._loop).result(PAUSE_SECONDS)

    def _paused_seconds(self) -> float | None:
        """Until the first pause ends; None if there is none."""
        return min(max(0.0, min(self._paused.values()) - time.monotonic()), MOST_REST_SECONDS) if self._paused else None

    def _gather(self, took: float) -> None:
        time.sleep(pacing.GATHERING_SECONDS)
        if self._lane is lanes.SLOW:
            self._stopping.wait(pacing.GIVING_WAY * took)

    def _try_again(self) -> None:
        time.sleep(PAUSE_SECONDS)
        self._news.set()

    def _record(self) -> None:
        """Records what has come back. What cannot be recorded yet stays for the next cycle."""
        outcomes = list(self._outcomes)
        if not outcomes:
            return
        try:
            later = attempts.record(outcomes)
        except DatabaseAway:
            raise
        except Exception:
            # One of them cannot be recorded, which must not keep the others. Its delivery is claimed again later.
            log.exception("sender.batch_not_recorded", outcomes=len(outcomes))
            later = self._record_singly(outcomes)
        kept = {id(outcome) for outcome in later}
        for outcome in outcomes:
            self._outcomes.popleft()
            if id(outcome) not in kept:
                claimed, answer = outcome.dispatch.claimed, outcome.answer
                # A fault of ours says nothing about how fast the endpoint is.
                seconds = 0.0 if answer.is_ours else answer.duration_ms / 1000
                self._windows.end(claimed.owner, claimed, answer.ok, seconds)
                if outcome.dispatch.is_ordered and claimed.owner not in self._paused:
                    self._awake.setdefault(claimed.owner, 0)  # it may get the next one now
        if later:
            self._outcomes.extend(later)
            self._news.set()

    def _record_singly(self, outcomes: Sequence[Outcome]) -> list[Outcome]:
        later = []
        for outcome in outcomes:
            try:
                later += attempts.record([outcome])
            except DatabaseAway:
                raise
            except Exception:
                log.exception("sender.outcome_not_recorded", delivery=outcome.dispatch.claimed.id)
        return later

    def _change_lanes(self) -> None:
        """Moves endpoints that are slow or have a backlog to the slow lane, and recovered ones back."""
        slow, recovered = self._windows.judge()
        if self._pace.is_behind:
            slow = set()
        slow |= self._windows.backlogs()
        if slow:
            lanes.slow_down(slow)
        if recovered:
            lanes.speed_up(recovered)
        if leaving := slow if self._lane is lanes.FAST else recovered:
            for owner in leaving:
                self._awake.pop(owner, None)
                self._new.pop(owner, None)
            self._hear(leaving)
            lanes.ring(leaving)

    def _claim(self, outbound: Outbound) -> None:
        """Fills the windows of the endpoints that are awake. One whose mailbox had less than its room goes to sleep."""
        rooms = self._windows.rooms(self._awake, self._pace.capacity, self._new)
        # In the slow lane the bells of full windows stay unheard, or each new delivery would ring them again.
        self._hear(self._awake if self._lane is lanes.FAST else rooms)
        if not rooms:
            if self._awake and self._windows.is_short and self._pace.can_grow:
                # Nothing else is handed to the loop that would show whether it keeps up.
                self._loop.call_soon_threadsafe(self._look_again, time.monotonic())
            return
        batch = attempts.claim(self._lane, rooms)
        found = {dispatch.claimed.owner for dispatch in batch}
        pauses: dict[str, float] = {}
        # A bell that leads to nothing may be that of an endpoint that is restrained.
        silent = {owner: room for owner, room in rooms.items() if owner not in found and not self._awake[owner]}
        if silent:
            restrained, pauses = attempts.claim_restrained(self._lane, silent)
            batch += restrained
        for dispatch in batch:
            claimed = dispatch.claimed
            self._windows.begin(claimed.owner, claimed, claimed.waited)
            rooms[dispatch.claimed.owner] -= 1
        self._put_to_sleep(rooms, pauses, silent)
        if not batch and self._windows.is_short:
            # The capacity went to endpoints that had nothing. No outcome will come back to start the next cycle.
            self._news.set()
        if batch:
            self._loop.call_soon_threadsafe(self._send_all, batch, outbound, time.monotonic())

    def _put_to_sleep(self, left: Mapping[str, int], pauses: Mapping[str, float], restrained: Collection[str]) -> None:
        """Those that have room left, for as long as their pause; what has none takes its place behind all others."""
        now = time.monotonic()
        for owner, room in left.items():
            times = self._awake.pop(owner) + 1
            self._new.pop(owner, None)
            if owner in pauses:
                self._paused[owner] = now + pauses[owner]
            elif room == 0:
                self._awake[owner] = 0 if owner in restrained else times
                if self._awake[owner] and times % pacing.CALL_EVERY == 0:
                    mailbox.ring_again(self._lane, owner)

    def _listen(self) -> None:
        now = time.monotonic()
        for owner in [owner for owner, ends in self._paused.items() if ends <= now]:
            del self._paused[owner]
            self._awake.setdefault(owner, 0)
        while self._bells:
            owner = self._bells.popleft()
            self._rung.add(owner)
            # The bell of one that is paused stays unheard: each new mail would ring again.
            if owner not in self._paused:
                self._awake.setdefault(owner, 0)
                self._new.setdefault(owner)

    def _hear(self, owners: Iterable[str]) -> None:
        if heard := self._rung.intersection(owners):
            self._rung -= heard
            mailbox.hear(self._lane, *heard)

    def _look_again(self, handed_over: float) -> None:
        self._pace.keep(handed_over, is_short=self._windows.is_short)
        self._news.set()

    def _send_all(self, batch: Sequence[Dispatch], outbound: Outbound, handed_over: float) -> None:
        self._pace.keep(handed_over, is_short=self._windows.is_short)
        for dispatch in batch:
            try:
                answered = outbound.post(dispatch.address, dispatch.body, dispatch.headers())
            except Exception as error:
                answered = self._loop.create_future()
                answered.set_exception(error)
            answered.add_done_callback(partial(self._end, dispatch))

    def _end(self, dispatch: Dispatch, answered: asyncio.Future[Answer]) -> None:
        try:
            answer = answered.result()
        except Exception:
            log.exception("sender.not_sent", delivery=dispatch.claimed.id)
            metrics.OUR_FAULTS.labels("not_sent").inc()
            answer = failed(Reason.NOT_SENT)
        # The attempt began when its request left our queue.
        at = clock.now() - timedelta(milliseconds=answer.duration_ms)
        pause_seconds = self._faults.pause() if answer.is_ours else 0.0
        self._outcomes.append(Outcome(dispatch, at, answer, pause_seconds))
        if not self._news.is_set():
            self._news.set()


def _outbound() -> Outbound:
    configured = settings()
    return Outbound(
        timeout_seconds=configured.webhook_timeout_seconds,
        allowed_networks=configured.webhook_allowed_networks,
        ca_file=configured.webhook_ca_file,
    )

"""The sender of a worker process: keeps a window of requests in flight for each endpoint."""

from __future__ import annotations

import asyncio
import gc
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial

import structlog

from app import mailbox, metrics
from app.config import settings
from app.domain.deliveries import attempts, lanes
from app.domain.deliveries.attempts import Batch, Dispatch, Outcome
from app.lib import clock
from app.mailbox import Claimed, Mail
from app.outbound import Answer, Reason, failed
from workers import pacing
from workers.concurrency import Windows
from workers.dispatcher import Dispatcher
from workers.mailboxes import serve_by
from workers.pacing import Faults, Pace

log = structlog.get_logger(__name__)


def serve(lane: Mail) -> None:
    """Declares the lane's actor in this process. The bells of the lane's queue wake one sender."""
    serve_by(DeliverySender(lane))
    # Objects that exist now live as long as the process, and attempts create hardly any reference cycles. By default,
    # the collector would run five times a second and free nothing.
    gc.freeze()
    gc.set_threshold(10_000)


class DeliverySender(Dispatcher[Dispatch, Outcome]):
    """A dispatcher whose owners are endpoints. It never waits for a row lock.

    If a worker dies, another one sends its deliveries again when the lease ends.
    """

    def __init__(self, lane: Mail) -> None:
        super().__init__(lane, settings().webhook_timeout_seconds)
        self._lane = lane
        self._windows = Windows(tolerates_slow=lane is lanes.SLOW)
        self._filled: Counter[str] = Counter()  # in how many cycles in a row an unrestrained endpoint filled its window
        self._faults = Faults()  # used by the loop's thread
        self._pace = Pace()

    @property
    def grace_seconds(self) -> float:
        """The length of a lease in seconds: every attempt ends on its own within that time."""
        return lanes.lease_seconds()

    @property
    def most_new(self) -> int:
        """Half the capacity: about as many new owners as can get a first request in one cycle."""
        return self._pace.capacity // 2

    def gather(self, cycle_seconds: float) -> None:
        """Waits as every dispatcher does. In the slow lane, also leaves the processors to others."""
        super().gather(cycle_seconds)
        if self._lane is lanes.SLOW:
            self.is_stopping.wait(pacing.GIVING_WAY * cycle_seconds)

    def rooms(self) -> Mapping[str, int]:
        """Returns the room in the windows of endpoints that are awake and stay in this lane."""
        self._change_lanes()
        if self._lane is lanes.FAST:
            # In the slow lane, bells of full windows stay unheard. Otherwise each new delivery would ring them again.
            self.owners.hear(self.owners.awake)
        rooms = self._windows.rooms(self.owners.awake, self._pace.capacity, self.owners.new)
        if not rooms and self.owners.awake and self._windows.is_short and self._pace.can_grow:
            # Nothing else is handed to the loop now, so only this call measures whether it keeps up.
            self._keep_pace()
            self.loop.call_soon_threadsafe(self.look_again)
        return rooms

    def claim(self, rooms: Mapping[str, int]) -> Batch:
        """Claims deliveries. An endpoint that filled its window the last time cannot be restrained."""
        batch = attempts.claim_all(self._lane, rooms, unsure=rooms.keys() - self._filled)
        self._call_others(rooms, set(batch.more).difference(batch.restrained))
        if batch.dispatches:
            self._keep_pace()
        return batch

    def begin(self, claimed: Claimed) -> None:
        """Counts the request in the endpoint's window."""
        self._windows.begin(claimed.owner, claimed.key, claimed.waited)

    def send(self, dispatch: Dispatch) -> None:
        """Starts one attempt."""
        try:
            answered = self.outbound.post(dispatch.address, dispatch.body, dispatch.headers())
        except Exception as error:
            answered = self.loop.create_future()
            answered.set_exception(error)
        answered.add_done_callback(partial(self._receive, dispatch))

    def record(self, outcomes: Sequence[Outcome]) -> Sequence[Outcome]:
        """Records attempts. Returns the outcomes whose delivery or endpoint is locked."""
        return attempts.record(outcomes)

    def broken(self, outcome: Outcome) -> Outcome:
        """Returns the outcome as if nothing had been sent. The delivery is retried a lease later."""
        return replace(outcome, answer=failed(Reason.NOT_SENT), pause_seconds=lanes.lease_seconds())

    def end(self, outcome: Outcome) -> None:
        """Makes room for another attempt. An ordered endpoint is awake at once for its next delivery."""
        claimed, answer = outcome.claimed, outcome.answer
        # A fault on our side says nothing about how fast the endpoint is.
        seconds = 0.0 if answer.is_ours else answer.duration_ms / 1000
        self._windows.end(claimed.owner, claimed.key, answer.ok, seconds)
        if outcome.dispatch.is_ordered:
            self.owners.wake(claimed.owner)

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
            self.owners.drop(leaving)
            lanes.ring(leaving)

    def _call_others(self, rooms: Mapping[str, int], filled: Collection[str]) -> None:
        """Rings for mailboxes that keep filling their windows: other processes may have room."""
        for owner in rooms.keys() - filled:
            self._filled.pop(owner, None)
        for owner in filled:
            self._filled[owner] += 1
            if self._filled[owner] % pacing.CALL_EVERY == 0:
                mailbox.ring_again(self._lane, owner)

    def _keep_pace(self) -> None:
        """Measures whether the loop keeps up with the requests that it is handed."""
        keep = partial(self._pace.keep, time.monotonic(), is_short=self._windows.is_short)
        self.loop.call_soon_threadsafe(keep)

    def _receive(self, dispatch: Dispatch, answered: asyncio.Future[Answer]) -> None:
        try:
            answer = answered.result()
        except Exception:
            log.exception("sender.not_sent", delivery=dispatch.claimed.id)
            metrics.OUR_FAULTS.labels("not_sent").inc()
            answer = failed(Reason.NOT_SENT)
        # The attempt began when its request left our queue.
        at = clock.now() - timedelta(milliseconds=answer.duration_ms)
        self.note(Outcome(dispatch, at, answer, self._faults.pause() if answer.is_ours else 0.0))

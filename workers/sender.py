"""The sender of a worker process: keeps a window of requests under way for each endpoint that has mail.

One thread, the desk, does the database work: it claims for all endpoints that were rung for and records what came
back, each in one go, so that the statements are shared by as many deliveries as the moment has. The requests
share an event loop and a connection pool in a thread of their own, which never waits for the database.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial

import structlog
import uvloop

from app import mailbox
from app.config import settings
from app.database import DatabaseAway
from app.domain import deliveries, lanes
from app.domain.deliveries import Dispatch, Outcome
from app.lib import clock
from app.mailbox import Mail
from app.outbound import Answer, Outbound
from workers.windows import MOST_UNDER_WAY, Windows

log = structlog.get_logger(__name__)

# How many requests may be under way for all endpoints of the process: more while they are wanted and what is begun is
# taken up at once by the loop, fewer when it waits there for longer than this. Beyond what the loop can work on, more
# would only open connections.
LEAST_PLACES, MOST_PLACES = 128, MOST_UNDER_WAY
MOST_LAG_SECONDS = 0.015
BEHIND_SECONDS = 0.05  # with that much lag the process itself may be what makes endpoints look slow
# So much time's answers and bells are dealt with together; less where many have come already.
GATHERING_SECONDS, LEAST_GATHERING_SECONDS = 0.01, 0.003
MANY = 32
# In the slow lane so many times as long as the round took, which is long where processors are scarce: what is late or
# slow already leaves them to others.
GIVING_WAY, MOST_GIVING_WAY_SECONDS = 3, 0.2
# A mailbox that has more than its room so often in a row is rung for: other processes may have room for the rest. The
# first times only where few mailboxes wait, for where there are many, others have theirs.
FIRST_CALLS, CALL_EVERY, FEW = (2, 4), 8, 32
# A process that has heard a message of many bells while many mailboxes wait in it leaves the next message to others for
# so long, times their numbers (of those that wait, at most so many), if that is not too short to make a difference.
LEAVING_SECONDS, MOST_WAITING, LEAST_LEAVING_SECONDS = 0.0000006, 500, 0.002
PAUSE_SECONDS = 1.0  # after the database was found to be away


class Sender:
    """Call `wake` when an endpoint has mail, `stop` before the process ends. Its threads start with the first wake."""

    def __init__(self, lane: Mail) -> None:
        self._lane = lane
        self._bells: deque[str] = deque()  # those for whom it was woken since the desk last looked
        # Whose mailboxes are to be looked into, and how often in a row each had more than the room that there was.
        self._awake: dict[str, int] = {}
        self._rung: set[str] = set()  # those whose bell is not heard yet
        self._windows = Windows(slow_lane=lane is lanes.SLOW)
        self._outcomes: deque[Outcome] = deque()
        self._news = threading.Event()
        self._stopping = False
        self._started = threading.Lock()
        self._desk: threading.Thread | None = None
        self._loop = uvloop.new_event_loop()
        self._lag = 0.0
        self._places = LEAST_PLACES

    def wake(self, *endpoint_ids: str) -> None:
        """Looks into the mailboxes of the endpoints soon, and until they are empty.

        Told of many while many wait here, it returns a little later, so that other processes take up the next bells.
        """
        self._start()
        self._bells.extend(endpoint_ids)
        self._news.set()
        waiting = len(self._awake) + len(self._bells)
        leaving = LEAVING_SECONDS * len(endpoint_ids) * min(waiting, MOST_WAITING)
        if leaving >= LEAST_LEAVING_SECONDS:
            time.sleep(leaving)

    def stop(self) -> None:
        """Claims nothing more; returns when every attempt under way has ended and is recorded."""
        self._stopping = True
        self._news.set()
        if self._desk is not None:
            self._desk.join()

    def _start(self) -> None:
        with self._started:
            if self._desk is None and not self._stopping:
                threading.Thread(target=self._loop.run_forever, name="requests", daemon=True).start()
                self._desk = threading.Thread(target=self._work, name="desk", daemon=True)
                self._desk.start()

    def _work(self) -> None:
        outbound = _outbound()
        while not self._stopping or self._windows.under_way or self._outcomes:
            self._news.wait()
            self._news.clear()
            began = time.monotonic()
            try:
                self._record()
                if not self._stopping:
                    self._listen()
                    self._change_lanes()
                    self._claim(outbound)
            except DatabaseAway as error:
                log.warning("sender.waits_for_database", error=str(error).strip())
                self._try_again()
            except Exception:
                log.exception("sender.broke")
                self._try_again()
            self._gather(time.monotonic() - began)
        self._listen()
        self._hear(self._rung)  # so that others can be rung for what is left
        asyncio.run_coroutine_threadsafe(outbound.close(), self._loop).result(PAUSE_SECONDS)

    def _gather(self, took: float) -> None:
        time.sleep(LEAST_GATHERING_SECONDS)
        if self._stopping:
            return
        if self._lane is lanes.SLOW:
            time.sleep(min(GIVING_WAY * took, MOST_GIVING_WAY_SECONDS))
        elif len(self._outcomes) < MANY:
            time.sleep(GATHERING_SECONDS - LEAST_GATHERING_SECONDS)

    def _try_again(self) -> None:
        time.sleep(PAUSE_SECONDS)
        self._news.set()

    def _record(self) -> None:
        """Records what has come back. What could not be recorded stays, and is tried again."""
        outcomes = list(self._outcomes)
        if not outcomes:
            return
        try:
            deliveries.record(outcomes)
        except DatabaseAway:
            raise
        except Exception:
            # One of them cannot be recorded; it must not keep the others. Its delivery falls due when the lease ends.
            log.exception("sender.batch_not_recorded", outcomes=len(outcomes))
            self._record_singly(outcomes)
        for outcome in outcomes:
            self._outcomes.popleft()
            claimed, answer = outcome.dispatch.claimed, outcome.answer
            if self._windows.end(claimed.owner, claimed, answer.ok, answer.duration_ms / 1000):
                self._awake.setdefault(claimed.owner, 0)

    def _record_singly(self, outcomes: Sequence[Outcome]) -> None:
        for outcome in outcomes:
            try:
                deliveries.record([outcome])
            except DatabaseAway:
                raise
            except Exception:
                log.exception("sender.outcome_not_recorded", delivery=outcome.dispatch.claimed.id)

    def _change_lanes(self) -> None:
        """Leaves endpoints that are slow or have a backlog to the slow lane, and those that recovered to the other."""
        slow, recovered = self._windows.judge()
        if self._lag > BEHIND_SECONDS:
            slow = set()
        slow |= self._windows.backlogs()
        if slow:
            lanes.slow_down(slow)
        if recovered:
            lanes.speed_up(recovered)
        if leaving := slow if self._lane is lanes.FAST else recovered:
            for owner in leaving:
                self._awake.pop(owner, None)
            self._hear(leaving)
            lanes.ring(leaving)

    def _claim(self, outbound: Outbound) -> None:
        """Fills the windows of the endpoints that are awake; those whose mailbox had less than its room go to sleep."""
        rooms = self._windows.rooms(self._awake, self._places)
        # In the slow lane the bells of those that have no room stay rung: each new mail would ring for them again.
        self._hear(self._awake if self._lane is lanes.FAST else rooms)
        if not rooms:
            if self._awake and self._windows.is_short and self._places < MOST_PLACES:
                # Nothing is handed over that would show how the loop is doing.
                self._loop.call_soon_threadsafe(self._look_again, time.monotonic())
            return
        batch = deliveries.claim(self._lane, rooms, self._windows.answering(rooms))
        for dispatch in batch:
            claimed = dispatch.claimed
            self._windows.begin(claimed.owner, claimed, dispatch.answered, claimed.waited)
            rooms[dispatch.claimed.owner] -= 1
        for owner, left in rooms.items():
            if left > 0:
                del self._awake[owner]
                continue
            times = self._awake.pop(owner) + 1
            self._awake[owner] = times  # behind all others: they take turns
            if times % CALL_EVERY == 0 or (times in FIRST_CALLS and len(self._awake) < FEW):
                mailbox.ring(self._lane, owner)
        if not batch and self._windows.is_short:
            # The places went to those that had nothing; nothing comes back that would bring the others their turn.
            self._news.set()
        if batch:
            self._loop.call_soon_threadsafe(self._send_all, batch, outbound, time.monotonic())

    def _listen(self) -> None:
        while self._bells:
            owner = self._bells.popleft()
            self._rung.add(owner)
            self._awake.setdefault(owner, 0)

    def _hear(self, owners: Iterable[str]) -> None:
        if heard := self._rung.intersection(owners):
            self._rung -= heard
            mailbox.hear(self._lane, *heard)

    def _look_again(self, handed_over: float) -> None:
        self._keep_pace(handed_over)
        self._news.set()

    def _keep_pace(self, handed_over: float) -> None:
        self._lag = time.monotonic() - handed_over
        if self._lag > MOST_LAG_SECONDS:
            self._places = max(LEAST_PLACES, self._places * 3 // 4)
        elif self._windows.is_short:
            self._places = min(MOST_PLACES, self._places + 4)

    def _send_all(self, batch: Sequence[Dispatch], outbound: Outbound, handed_over: float) -> None:
        self._keep_pace(handed_over)
        for dispatch in batch:
            at = clock.now()
            try:
                answered = outbound.post(dispatch.address, dispatch.body, dispatch.headers())
            except Exception as error:
                answered = self._loop.create_future()
                answered.set_exception(error)
            answered.add_done_callback(partial(self._end, dispatch, at))

    def _end(self, dispatch: Dispatch, at: datetime, answered: asyncio.Future[Answer]) -> None:
        try:
            answer = answered.result()
        except Exception:
            # Recorded as a failure, or it would be tried for ever.
            log.exception("sender.not_sent", delivery=dispatch.claimed.id)
            answer = Answer(None, "The request could not be sent.", b"", 0)
        self._outcomes.append(Outcome(dispatch, at, answer))
        if not self._news.is_set():
            self._news.set()


def _outbound() -> Outbound:
    configured = settings()
    return Outbound(
        timeout_seconds=configured.webhook_timeout_seconds,
        allowed_networks=configured.webhook_allowed_networks,
        ca_file=configured.webhook_ca_file,
    )

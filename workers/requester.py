"""The requester of a worker process: keeps the requests of runs under way, those of many workspaces at once.

One thread, the desk, does the database work: it records what has come back and claims more. The requests share an
event loop and a connection pool in a second thread.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter, deque
from collections.abc import Sequence
from functools import partial

import structlog
import uvloop

from app import mailbox
from app.config import settings
from app.database import DatabaseAway
from app.domain import requests
from app.domain.requests import Dispatch, Outcome
from app.outbound import Answer, Outbound, Reason, failed
from workers.faults import Faults

log = structlog.get_logger(__name__)

MOST_UNDER_WAY = 400
# For each workspace: a server that hangs has at most these, and delays no other workspace.
MOST_EACH = 20
# How long requests under way may take once the process is to end; then they fail as ours, which spends no attempt.
GRACE_SECONDS = 15.0
AWAY_SECONDS = 1.0  # after the database was found to be away
BUSY_SECONDS = 0.02  # after a run was found locked


class Requester:
    """Call `wake` when a workspace has requests, `stop` before the process ends. Its threads start with the first wake.

    A request whose worker dies is sent again by another one when its lease ends.
    """

    def __init__(self) -> None:
        self._bells: deque[str] = deque()  # workspaces that it was woken for since the desk last looked
        self._awake: dict[str, None] = {}  # workspaces that may have requests, the one to be served next first
        self._under_way: Counter[str] = Counter()
        self._outcomes: deque[Outcome] = deque()
        self._faults = Faults()  # used by the loop's thread
        self._news = threading.Event()
        self._stopping = threading.Event()
        self._started = threading.Lock()
        self._desk: threading.Thread | None = None
        self._loop = uvloop.new_event_loop()
        self._outbound: Outbound

    def wake(self, workspace_id: str) -> None:
        """Sends what the workspace has, soon, and until there is no more. Never waits."""
        self._start()
        self._bells.append(workspace_id)
        self._news.set()

    def stop(self) -> None:
        """Claims nothing more; returns when every request under way has ended and is recorded."""
        self._stopping.set()
        self._news.set()
        if self._desk is not None:
            self._loop.call_soon_threadsafe(self._loop.call_later, GRACE_SECONDS, self._close)
            self._desk.join()

    def _start(self) -> None:
        with self._started:
            if self._desk is None and not self._stopping.is_set():
                configured = settings()
                self._outbound = Outbound(
                    timeout_seconds=requests.TIMEOUT_SECONDS,
                    allowed_networks=configured.webhook_allowed_networks,
                    ca_file=configured.webhook_ca_file,
                )
                threading.Thread(target=self._loop.run_forever, name="requests", daemon=True).start()
                self._desk = threading.Thread(target=self._work, name="desk", daemon=True)
                self._desk.start()

    def _work(self) -> None:
        while not self._stopping.is_set() or self._under_way or self._outcomes:
            self._news.wait()
            self._news.clear()
            try:
                self._record()
                if not self._stopping.is_set():
                    self._claim()
            except DatabaseAway as error:
                log.warning("requester.waits_for_database", error=str(error).strip())
                self._try_again()
            except Exception:
                log.exception("requester.broke")
                self._try_again()
        for workspace_id in {*self._awake, *self._bells}:  # others take over
            mailbox.hear(requests.MAIL, workspace_id)
            mailbox.ring(requests.MAIL, workspace_id)
        self._loop.call_soon_threadsafe(self._close)

    def _close(self) -> None:
        self._closing = self._loop.create_task(self._outbound.close())

    def _try_again(self) -> None:
        time.sleep(AWAY_SECONDS)
        self._news.set()

    def _record(self) -> None:
        """Records what has come back. What cannot be recorded yet stays for the next look."""
        outcomes = list(self._outcomes)
        if not outcomes:
            return
        later = requests.record(outcomes)
        for outcome in outcomes:
            self._outcomes.popleft()
            if outcome not in later:
                self._end(outcome.dispatch.claimed.owner)
        if later:
            self._outcomes.extend(later)
            time.sleep(BUSY_SECONDS)
            self._news.set()

    def _end(self, workspace_id: str) -> None:
        self._under_way[workspace_id] -= 1
        if not self._under_way[workspace_id]:
            del self._under_way[workspace_id]

    def _claim(self) -> None:
        """Fills the room of the workspaces that may have requests; the next call begins with the others."""
        while self._bells:
            self._awake.setdefault(self._bells.popleft())
        rooms = self._rooms()
        if not rooms:
            return
        mailbox.hear(requests.MAIL, *rooms)
        dispatches, full = requests.claim(rooms)
        for dispatch in dispatches:
            self._under_way[dispatch.claimed.owner] += 1
        for workspace_id in rooms:
            del self._awake[workspace_id]
        self._awake |= dict.fromkeys(full)
        if dispatches:
            self._loop.call_soon_threadsafe(self._send, dispatches)
        if any(self._under_way[workspace_id] < MOST_EACH for workspace_id in full):
            self._news.set()  # some was not wanted any more, so no outcome need lead to the next look

    def _rooms(self) -> dict[str, int]:
        left = MOST_UNDER_WAY - self._under_way.total()
        rooms = {}
        for workspace_id in self._awake:
            if room := min(left, MOST_EACH - self._under_way[workspace_id]):
                rooms[workspace_id] = room
                left -= room
        return rooms

    def _send(self, dispatches: Sequence[Dispatch]) -> None:
        for dispatch in dispatches:
            try:
                answered = self._outbound.request(
                    dispatch.method,
                    dispatch.address,
                    dispatch.body,
                    dispatch.headers,
                    most_bytes=requests.MOST_BYTES,
                    timeout_seconds=requests.TIMEOUT_SECONDS,
                )
            except ValueError as refusal:
                self._note(dispatch, failed(Reason.BAD_ADDRESS, str(refusal), may_have_arrived=False))
            else:
                answered.add_done_callback(partial(self._receive, dispatch))

    def _receive(self, dispatch: Dispatch, answered: asyncio.Future[Answer]) -> None:
        self._note(dispatch, answered.result())

    def _note(self, dispatch: Dispatch, answer: Answer) -> None:
        pause_seconds = self._faults.pause() if answer.is_ours else 0.0
        self._outcomes.append(Outcome(dispatch, answer, pause_seconds))
        self._news.set()

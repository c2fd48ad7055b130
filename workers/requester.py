"""The requester of a worker process: keeps the requests of runs under way, those of many workspaces at once."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from functools import partial

from app import mailbox
from app.domain import requests
from app.domain.requests import Dispatch, Outcome
from app.outbound import Answer, Reason, failed
from workers.desk import Desk
from workers.faults import Faults

MOST_UNDER_WAY = 400
# For each workspace: a server that hangs has at most these, and delays no other workspace.
MOST_EACH = 20


class Requester(Desk[Outcome]):
    """A request whose worker dies is sent again by another one when its lease ends. The owners are workspaces."""

    def __init__(self) -> None:
        super().__init__(requests.TIMEOUT_SECONDS)
        self._awake: dict[str, None] = {}  # workspaces that may have requests, the one to be served next first
        self._under_way: Counter[str] = Counter()
        self._faults = Faults()  # used by the loop's thread

    @property
    def is_busy(self) -> bool:
        """Whether any request is under way, or its outcome not recorded."""
        return bool(self._under_way)

    def record(self, outcomes: Sequence[Outcome]) -> Sequence[Outcome]:
        """Hands responses to their runs; returns those that have to be recorded later."""
        return requests.record(outcomes)

    def end(self, outcome: Outcome) -> None:
        """Makes room for another request of the workspace."""
        workspace_id = outcome.dispatch.claimed.owner
        self._under_way[workspace_id] -= 1
        if not self._under_way[workspace_id]:
            del self._under_way[workspace_id]

    def claim(self) -> None:
        """Fills the room of the workspaces that may have requests; the next call begins with the others."""
        while self.bells:
            self._awake.setdefault(self.bells.popleft())
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
            self.loop.call_soon_threadsafe(self._send, dispatches)
        if any(self._under_way[workspace_id] < MOST_EACH for workspace_id in full):
            self.look_again()  # some was not wanted any more, so no outcome need lead to the next look

    def leave(self) -> None:
        """Rings for the workspaces that may have requests."""
        for workspace_id in {*self._awake, *self.bells}:
            mailbox.hear(requests.MAIL, workspace_id)
            mailbox.ring(requests.MAIL, workspace_id)

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
                answered = self.outbound.request(
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
        self.note(Outcome(dispatch, answer, pause_seconds))

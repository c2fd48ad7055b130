"""The reader of a worker process: tells providers what members have read."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from functools import partial

from app import mailbox
from app.domain import read_receipts
from app.domain.read_receipts import MAIL, Dispatch, Outcome
from app.outbound import Answer, Reason, failed
from workers.desk import Desk
from workers.faults import Faults

MOST_UNDER_WAY = 100
# For each channel: a provider that hangs has at most these, and delays no other channel.
MOST_EACH = 10
# Of a provider's response.
MOST_BYTES = 4_096


class Reader(Desk[Outcome]):
    """A receipt whose worker dies is sent again by another one when its lease ends. The owners are channels."""

    def __init__(self) -> None:
        super().__init__(read_receipts.TIMEOUT_SECONDS)
        self._awake: dict[str, None] = {}  # channels that may have receipts, the one to be served next first
        self._under_way: Counter[str] = Counter()
        self._faults = Faults()  # used by the loop's thread

    @property
    def is_busy(self) -> bool:
        """Whether any request is under way, or its outcome not recorded."""
        return bool(self._under_way)

    def record(self, outcomes: Sequence[Outcome]) -> Sequence[Outcome]:
        """Records what came of receipts; none has to be recorded later."""
        read_receipts.record(outcomes)
        return ()

    def end(self, outcome: Outcome) -> None:
        """Makes room for another receipt of the channel."""
        channel_id = outcome.dispatch.claimed.owner
        self._under_way[channel_id] -= 1
        if not self._under_way[channel_id]:
            del self._under_way[channel_id]

    def claim(self) -> None:
        """Fills the room of the channels that may have receipts; the next call begins with the others."""
        while self.bells:
            self._awake.setdefault(self.bells.popleft())
        rooms = self._rooms()
        if not rooms:
            return
        mailbox.hear(MAIL, *rooms)
        dispatches, full = read_receipts.claim(rooms)
        for channel_id in rooms:
            del self._awake[channel_id]
        self._awake |= dict.fromkeys(full)
        self._under_way.update(dispatch.claimed.owner for dispatch in dispatches)
        if dispatches:
            self.loop.call_soon_threadsafe(self._send, dispatches)
        if any(self._under_way[channel_id] < MOST_EACH for channel_id in full):
            self.look_again()  # some were dropped, so no outcome need lead to the next look

    def leave(self) -> None:
        """Rings for the channels that may have receipts."""
        for channel_id in {*self._awake, *self.bells}:
            mailbox.hear(MAIL, channel_id)
            mailbox.ring(MAIL, channel_id)

    def _rooms(self) -> dict[str, int]:
        left = MOST_UNDER_WAY - self._under_way.total()
        rooms = {}
        for channel_id in self._awake:
            if room := min(left, MOST_EACH - self._under_way[channel_id]):
                rooms[channel_id] = room
                left -= room
        return rooms

    def _send(self, dispatches: Sequence[Dispatch]) -> None:
        for dispatch in dispatches:
            request = dispatch.request
            try:
                answered = self.outbound.request(
                    request.method,
                    request.address,
                    request.body,
                    request.headers,
                    most_bytes=MOST_BYTES,
                    timeout_seconds=read_receipts.TIMEOUT_SECONDS,
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

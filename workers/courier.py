"""The courier of a worker process: sends the messages of many channels, each at its pace."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

from app import mailbox
from app.channels.base import Outcome
from app.domain.channels import outboxes
from app.domain.conversations import sending_outcomes, sendings
from app.domain.conversations.message_statuses import UNRECORDED
from app.domain.conversations.sendings import Dispatch, Sending
from app.mailbox import Claimed
from workers.concurrency import Windows
from workers.desk import Desk
from workers.message_requests import MessageRequests

# Messages that the process works on at once, those of providers that hang not counted.
CAPACITY = 400
# Of a provider's response.
MOST_BYTES = 65_536
# After a cycle, so that outcomes and bells share the statements of the next.
GATHERING_SECONDS = 0.005
# A channel that has reached its rate is looked into no more often than this; slots it missed are claimed together.
CLOSED_SECONDS = 0.05


class Courier(Desk[Sending]):
    """A message whose worker dies is not sent again. The owners are channels."""

    def __init__(self) -> None:
        super().__init__(sendings.TIMEOUT_SECONDS)
        self._awake: dict[str, None] = {}  # channels that may have messages, the one to be served next first
        # Until when on the monotonic clock nothing is due in a channel, and until when nothing can be sent at all.
        self._timers: dict[str, float] = {}
        self._closed: dict[str, float] = {}
        self._rung: set[str] = set()  # channels whose bells are not heard yet
        self._windows = Windows(slow_lane=True)
        self._began: dict[Claimed, float] = {}
        asked = partial(self.ask, most_bytes=MOST_BYTES, timeout_seconds=sendings.TIMEOUT_SECONDS)
        self._requests = MessageRequests(asked, self.is_stopping)

    @property
    def is_busy(self) -> bool:
        """Whether any message is under way, or its outcome not recorded."""
        return bool(self._began)

    def pause(self) -> float | None:
        """Until the first pause of a channel ends."""
        time.sleep(GATHERING_SECONDS)
        ends = min((*self._timers.values(), *self._closed.values()), default=None)
        return None if ends is None else max(0.0, ends - time.monotonic())

    def record(self, outcomes: Sequence[Sending]) -> Sequence[Sending]:
        """Records what came of messages, and looks into their channels when the next are due."""
        later, due = sending_outcomes.record(outcomes)
        now = time.monotonic()
        for channel_id, seconds in due.items():
            self._look_in(channel_id, now + seconds)
        return later

    def broken(self, outcome: Sending) -> Sending:
        """Whether the message was taken is not known."""
        return replace(outcome, verdict=UNRECORDED)

    def end(self, outcome: Sending) -> None:
        """Makes room for another message of the channel."""
        claimed = outcome.claimed
        if (began := self._began.pop(claimed, None)) is not None:
            succeeded = outcome.verdict.outcome in (Outcome.SENT, Outcome.FAILED)
            self._windows.end(claimed.owner, claimed, succeeded, time.monotonic() - began)

    def claim(self) -> None:
        """Fills the windows of the channels that may have messages."""
        self._listen()
        self._windows.judge()
        rooms = self._windows.rooms(self._awake, CAPACITY)
        if not rooms:
            return
        self._hear(rooms)
        batch = sendings.claim(rooms)
        now = time.monotonic()
        for dispatch in batch.dispatches:
            self._began[dispatch.claimed] = now
            self._windows.begin(dispatch.claimed.owner, dispatch.claimed)
        for channel_id in rooms:
            del self._awake[channel_id]
        for channel_id, (seconds, is_closed) in batch.pauses.items():
            if is_closed:
                self._closed[channel_id] = now + max(seconds, CLOSED_SECONDS)
            else:
                self._look_in(channel_id, now + seconds)
        if batch.settled:
            self.note(*batch.settled)
        if batch.dispatches:
            self.loop.call_soon_threadsafe(self._send_all, batch.dispatches)
        elif self._windows.is_short:
            self.look_again()  # the room went to channels that had nothing

    def leave(self) -> None:
        """Rings for the channels that may have messages."""
        for channel_id in {*self._awake, *self._timers, *self._closed, *self._rung, *self.bells}:
            mailbox.hear(outboxes.MAIL, channel_id)
            mailbox.ring(outboxes.MAIL, channel_id)

    def _listen(self) -> None:
        now = time.monotonic()
        for ending in (self._timers, self._closed):
            for channel_id in [channel_id for channel_id, ends in ending.items() if ends <= now]:
                del ending[channel_id]
                self._awake.setdefault(channel_id)
        while self.bells:
            channel_id = self.bells.popleft()
            self._rung.add(channel_id)
            self._awake.setdefault(channel_id)
        # The bell of one that is closed stays unheard: each new message would ring again.
        for channel_id in self._closed:
            self._awake.pop(channel_id, None)

    def _hear(self, channel_ids: Iterable[str]) -> None:
        if heard := self._rung.intersection(channel_ids):
            self._rung -= heard
            mailbox.hear(outboxes.MAIL, *heard)

    def _look_in(self, channel_id: str, at: float) -> None:
        """Looks into the channel at that time, or earlier if it was going to."""
        self._timers[channel_id] = min(at, self._timers.get(channel_id, at))
        if at <= time.monotonic():
            self.look_again()

    def _send_all(self, dispatches: Sequence[Dispatch]) -> None:
        for dispatch in dispatches:
            self.loop.create_task(self._send(dispatch))

    async def _send(self, dispatch: Dispatch) -> None:
        self.note(await self._requests.send(dispatch))

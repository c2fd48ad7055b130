"""The courier of a worker process: sends the messages of many channels, each at its pace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from app.channels.base import Outcome
from app.domain.channels import outboxes
from app.domain.conversations import sending_outcomes, sendings
from app.domain.conversations.message_statuses import UNRECORDED
from app.domain.conversations.sendings import Dispatch, Sending
from app.mailbox import Claimed, Found, Pause
from workers.concurrency import Windows
from workers.desk import Desk
from workers.message_requests import MessageRequests

# Messages that the process works on at once, those of providers that hang not counted.
CAPACITY = 400
# Of a provider's response.
MOST_BYTES = 65_536


class Courier(Desk[Dispatch, Sending]):
    """A message whose worker dies is not sent again. The owners are channels."""

    asks_providers = True

    def __init__(self) -> None:
        super().__init__(outboxes.MAIL, sendings.TIMEOUT_SECONDS)
        self._windows = Windows(slow_lane=True)
        asked = partial(self.ask, most_bytes=MOST_BYTES, timeout_seconds=sendings.TIMEOUT_SECONDS)
        self._requests = MessageRequests(asked, self.is_stopping)

    def rooms(self) -> Mapping[str, int]:
        """What is left of the channels' windows."""
        self._windows.judge()
        return self._windows.rooms(self.owners.awake, CAPACITY, self.owners.new)

    def claim(self, rooms: Mapping[str, int]) -> Found[Dispatch, Sending]:
        """Claims messages; those of which it is clear already what comes of them are settled."""
        return sendings.claim(rooms)

    def begin(self, claimed: Claimed) -> None:
        """Takes room of the channel's window."""
        self._windows.begin(claimed.owner, claimed.key)

    def send(self, dispatch: Dispatch) -> None:
        """Makes the requests that send the message."""
        self.loop.create_task(self._send(dispatch))

    def record(self, outcomes: Sequence[Sending]) -> Sequence[Sending]:
        """Records what came of messages, and looks into their channels when the next are due."""
        later, due = sending_outcomes.record(outcomes)
        for channel_id, seconds in due.items():
            self.owners.look_in(channel_id, Pause(seconds))
        return later

    def broken(self, outcome: Sending) -> Sending:
        """Whether the message was taken is not known."""
        return replace(outcome, verdict=UNRECORDED)

    def end(self, outcome: Sending) -> None:
        """Makes room for another message of the channel."""
        succeeded = outcome.verdict.outcome in (Outcome.SENT, Outcome.FAILED)
        self._windows.end(outcome.claimed.owner, outcome.claimed.key, succeeded)

    async def _send(self, dispatch: Dispatch) -> None:
        self.note(await self._requests.send(dispatch))

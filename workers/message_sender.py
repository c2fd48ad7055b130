"""The message sender of a worker process: sends the messages of many channels, each at its pace."""

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
from workers.dispatcher import Dispatcher
from workers.message_requests import MessageRequests

# The most messages that the process works on at once, not counting messages of providers that hang.
CAPACITY = 400
# The most bytes of a provider's response.
MOST_BYTES = 65_536


class MessageSender(Dispatcher[Dispatch, Sending]):
    """A dispatcher whose owners are channels. If a worker dies, its messages are not sent again."""

    asks_providers = True

    def __init__(self) -> None:
        super().__init__(outboxes.MAIL, sendings.TIMEOUT_SECONDS)
        self._windows = Windows(tolerates_slow=True)
        asked = partial(self.ask, most_bytes=MOST_BYTES, timeout_seconds=sendings.TIMEOUT_SECONDS)
        self._requests = MessageRequests(asked, self.is_stopping)

    def rooms(self) -> Mapping[str, int]:
        """Returns how many more messages may begin for each awake channel. Omits channels without room."""
        self._windows.judge()
        return self._windows.rooms(self.owners.awake, CAPACITY, self.owners.new)

    def claim(self, rooms: Mapping[str, int]) -> Found[Dispatch, Sending]:
        """Claims messages. Settles messages that need no request."""
        return sendings.claim(rooms)

    def begin(self, claimed: Claimed) -> None:
        """Counts the message in the channel's window."""
        self._windows.begin(claimed.owner, claimed.key)

    def send(self, dispatch: Dispatch) -> None:
        """Starts the requests that send the message."""
        self.loop.create_task(self._send(dispatch))

    def record(self, outcomes: Sequence[Sending]) -> Sequence[Sending]:
        """Records outcomes, and plans to look into their channels when the next messages are due."""
        later, due = sending_outcomes.record(outcomes)
        for channel_id, seconds in due.items():
            self.owners.look_in(channel_id, Pause(seconds))
        return later

    def broken(self, outcome: Sending) -> Sending:
        """Returns the outcome UNRECORDED: it is unknown whether the provider has taken the message."""
        return replace(outcome, verdict=UNRECORDED)

    def end(self, outcome: Sending) -> None:
        """Frees the message's room in the channel's window."""
        succeeded = outcome.verdict.outcome in (Outcome.SENT, Outcome.FAILED)
        self._windows.end(outcome.claimed.owner, outcome.claimed.key, succeeded)

    async def _send(self, dispatch: Dispatch) -> None:
        self.note(await self._requests.send(dispatch))

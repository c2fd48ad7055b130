"""A dispatcher that divides its room fairly: an owner whose server hangs delays no other owner."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

from app.channels.base import Request
from app.mailbox import Claimed, Found, Held, Mail
from app.outbound import Answer, Reason, failed
from workers.dispatcher import Dispatcher
from workers.pacing import Faults

D = TypeVar("D", bound=Held)
D_co = TypeVar("D_co", bound=Held, covariant=True)
T = TypeVar("T", bound=Held)


class Mailboxes(Protocol[D_co, T]):
    """The module of a kind of mail.

    A process has at most `MOST_UNDER_WAY` rows in flight, and at most `MOST_EACH` of one owner. It reads at most
    `MOST_BYTES` of an answer.
    """

    MAIL: Mail
    MOST_UNDER_WAY: int
    MOST_EACH: int
    MOST_BYTES: int
    TIMEOUT_SECONDS: float

    def claim(self, rooms: Mapping[str, int]) -> Found[D_co, T]:
        """Claims up to `rooms` rows of each owner."""

    def record(self, outcomes: Sequence[T]) -> list[T]:
        """Records the outcomes. Returns the outcomes to record later."""


class FairDispatcher(Dispatcher[D, T]):
    """Dispatches one kind of mail: `kind` claims the rows and records the outcomes.

    If a worker dies, another one sends its rows again when the lease ends.
    """

    def __init__(self, kind: Mailboxes[D, T]) -> None:
        super().__init__(kind.MAIL, kind.TIMEOUT_SECONDS)
        self.faults = Faults()  # used by the loop's thread
        self._kind = kind
        self._numbers: Counter[str] = Counter()  # how many rows each owner has in flight

    def claim(self, rooms: Mapping[str, int]) -> Found[D, T]:
        """Claims up to `rooms` rows of each owner."""
        return self._kind.claim(rooms)

    def record(self, outcomes: Sequence[T]) -> Sequence[T]:
        """Records the outcomes. Returns the outcomes to record later."""
        return self._kind.record(outcomes)

    def rooms(self) -> dict[str, int]:
        """Returns the room for each owner. New owners get one row each first, from half of the room."""
        left = self._kind.MOST_UNDER_WAY - self._numbers.total()
        rooms: dict[str, int] = {}
        for owners, most, kept in ((self.owners.new, 1, left // 2), (self.owners.awake, self._kind.MOST_EACH, 0)):
            for owner in owners:
                if left <= kept:
                    break
                given = rooms.get(owner, 0)
                if room := min(left, most - given, self._kind.MOST_EACH - self._numbers[owner] - given):
                    rooms[owner] = given + room
                    left -= room
        return rooms

    def begin(self, claimed: Claimed) -> None:
        """Counts the row as in flight for its owner."""
        self._numbers[claimed.owner] += 1

    def end(self, outcome: T) -> None:
        """Counts one row less as in flight for the owner."""
        self._numbers -= Counter([outcome.claimed.owner])

    def ask_any(self, request: Request) -> asyncio.Future[Answer]:
        """Sends the request once, on the loop's thread. A bad address gives a failed answer, no error."""
        try:
            return self.ask(request, self._kind.MOST_BYTES, self._kind.TIMEOUT_SECONDS)
        except ValueError as refusal:
            refused = self.loop.create_future()
            refused.set_result(failed(Reason.BAD_ADDRESS, str(refusal), may_have_arrived=False))
            return refused

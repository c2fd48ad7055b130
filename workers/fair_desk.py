"""A desk that divides its room fairly: an owner whose server hangs delays no other."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TypeVar

from app.channels.base import Request
from app.mailbox import Claimed, Held, Mail
from app.outbound import Answer, Reason, failed
from workers.backoff import Faults
from workers.desk import Desk

D = TypeVar("D", bound=Held)
T = TypeVar("T", bound=Held)


class FairDesk(Desk[D, T]):
    """Has at most `most` rows of the mail under way, and at most `most_each` of one owner."""

    def __init__(self, mail: Mail, timeout_seconds: float, most: int, most_each: int) -> None:
        super().__init__(mail, timeout_seconds)
        self.faults = Faults()  # used by the loop's thread
        self._most = most
        self._most_each = most_each
        self._numbers: Counter[str] = Counter()  # of rows under way, by owner

    def rooms(self) -> dict[str, int]:
        """What is left for each owner, the one to be served next first."""
        left = self._most - self._numbers.total()
        rooms = {}
        for owner in self.owners.awake:
            if room := min(left, self._most_each - self._numbers[owner]):
                rooms[owner] = room
                left -= room
        return rooms

    def begin(self, claimed: Claimed) -> None:
        """Takes room of the owner."""
        self._numbers[claimed.owner] += 1

    def end(self, outcome: T) -> None:
        """Makes room for another request of the owner."""
        self._numbers -= Counter([outcome.claimed.owner])

    def ask_any(self, request: Request, most_bytes: int, timeout_seconds: float) -> asyncio.Future[Answer]:
        """The same as `ask`, but an address that cannot be asked is an answer, too."""
        try:
            return self.ask(request, most_bytes, timeout_seconds)
        except ValueError as refusal:
            refused = self.loop.create_future()
            refused.set_result(failed(Reason.BAD_ADDRESS, str(refusal), may_have_arrived=False))
            return refused

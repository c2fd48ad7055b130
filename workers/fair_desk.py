"""A desk that divides its room fairly: an owner whose server hangs delays no other."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from app import mailbox
from app.channels.base import Request
from app.mailbox import Claimed, Mail
from app.outbound import Answer, Reason, failed
from workers.backoff import Faults
from workers.desk import Desk

T = TypeVar("T")


class FairDesk(Desk[T]):
    """Has at most `most` rows of the mail under way, and at most `most_each` of one owner."""

    def __init__(self, mail: Mail, timeout_seconds: float, most: int, most_each: int) -> None:
        super().__init__(timeout_seconds)
        self._mail = mail
        self._most = most
        self._most_each = most_each
        self._awake: dict[str, None] = {}  # owners that may have mail, the one to be served next first
        self._under_way: Counter[str] = Counter()
        self.faults = Faults()  # used by the loop's thread

    @abstractmethod
    def begin(self, rooms: Mapping[str, int]) -> tuple[Iterable[Claimed], Iterable[str]]:
        """Claims up to that many rows of each owner and begins their requests.

        Returns the rows that an outcome will be noted for, and the owners that may have more.
        """

    @abstractmethod
    def claimed(self, outcome: T) -> Claimed:
        """The row that the outcome is of."""

    @property
    def is_busy(self) -> bool:
        """Whether any request is under way, or its outcome not recorded."""
        return bool(self._under_way)

    def claim(self) -> None:
        """Fills the room of the owners that may have mail; the next call begins with the others."""
        while self.bells:
            owner = self.bells.popleft()
            self._awake.setdefault(owner)
            self.new.setdefault(owner)
        rooms = self._rooms()
        if not rooms:
            return
        mailbox.hear(self._mail, *rooms)
        begun, full = self.begin(rooms)
        self._under_way.update([row.owner for row in begun])
        for owner in rooms:
            del self._awake[owner]
            self.new.pop(owner, None)
        self._awake |= dict.fromkeys(full)
        if any(self._under_way[owner] < self._most_each for owner in full):
            self.look_again()  # some were dropped, so no outcome need lead to the next look

    def end(self, outcome: T) -> None:
        """Makes room for another request of the owner."""
        owner = self.claimed(outcome).owner
        self._under_way[owner] -= 1
        if not self._under_way[owner]:
            del self._under_way[owner]

    def leave(self) -> None:
        """Rings for the owners that may have mail."""
        for owner in {*self._awake, *self.bells}:
            mailbox.hear(self._mail, owner)
            mailbox.ring_again(self._mail, owner)

    def attempt(
        self, request: Request, note: Callable[[Answer, float], None], most_bytes: int, timeout_seconds: float
    ) -> None:
        """Sends the request once, in the loop's thread.

        `note` gets the answer, and for how many seconds to wait before the next attempt if that is a fault of ours.
        """

        def receive(answer: Answer) -> None:
            note(answer, self.faults.pause() if answer.is_ours else 0.0)

        try:
            answered = self.ask(request, most_bytes, timeout_seconds)
        except ValueError as refusal:
            receive(failed(Reason.BAD_ADDRESS, str(refusal), may_have_arrived=False))
        else:
            answered.add_done_callback(lambda done: receive(done.result()))

    def _rooms(self) -> dict[str, int]:
        left = self._most - self._under_way.total()
        rooms: dict[str, int] = {}
        for owners, most, kept in ((self.new, 1, left // 2), (self._awake, self._most_each, 0)):
            for owner in owners:
                if left <= kept:
                    break
                given = rooms.get(owner, 0)
                if (room := min(left, most - given, self._most_each - self._under_way[owner] - given)) > 0:
                    rooms[owner] = given + room
                    left -= room
        return rooms

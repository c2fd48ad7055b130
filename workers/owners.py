"""Owners: decides which mailboxes a dispatcher looks into now, and which it looks into later."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Collection, Iterable, Mapping

from app import mailbox
from app.mailbox import Mail, Pause

HOLDING_BACK_SECONDS, LOOKS_EVERY_SECONDS = 0.1, 0.005


class Owners:
    """The owners that a dispatcher was woken for. Any thread may call `ring` and `hold_back`.

    Only the dispatcher's thread calls the other methods. In each cycle, the order is `listen`, `hear`, the claim and
    `looked_into`. So the next cycle looks into mailboxes whose bells ring during the claim.
    """

    def __init__(self, mail: Mail) -> None:
        self.awake: dict[str, None] = {}  # owners that may have mail now, the next to be served first
        self.new: dict[str, None] = {}  # awake owners whose bell rang since their mailbox was last looked into
        self._mail = mail
        self._bells: deque[str] = deque()  # owners whose bells rang since `listen`
        self._rung: set[str] = set()  # owners whose bells `listen` noted, not yet passed to `mailbox.hear`
        self._later: dict[str, float] = {}  # when to look again, on the monotonic clock
        self._closed: set[str] = set()  # owners in `_later` that are not served before their time

    def ring(self, owners: Iterable[str]) -> None:
        """Notes that the bells of these owners have rung."""
        self._bells.extend(owners)

    def hold_back(self, most: int) -> None:
        """Waits, but only briefly, while more than `most` owners wait for their first request.

        New bells can pass bells that stay in the queue, but not owners in memory. The wait is brief because any number
        of hanging owners must not delay the bells of the others.
        """
        ends = time.monotonic() + HOLDING_BACK_SECONDS
        while len(self.new) + len(self._bells) > most and time.monotonic() < ends:
            time.sleep(LOOKS_EVERY_SECONDS)

    def listen(self) -> None:
        """Wakes the owners whose bells rang, and the owners whose time has come."""
        now = time.monotonic()
        for owner in [owner for owner, at in self._later.items() if at <= now]:
            del self._later[owner]
            self._closed.discard(owner)
            self.wake(owner)
        while self._bells:
            owner = self._bells.popleft()
            self._rung.add(owner)
            self.wake(owner)
            if owner in self.awake:
                self.new.setdefault(owner)

    def wake(self, owner: str) -> None:
        """Marks an owner that may have mail now. A closed owner stays asleep."""
        if owner not in self._closed:
            self.awake.setdefault(owner)

    def hear(self, owners: Collection[str]) -> None:
        """Hears the owners' bells, so that mail that comes from now on rings again.

        Call it just before looking into the mailboxes. Until then, the unheard bell of an owner keeps new mail from
        ringing. That is intended for owners that are closed or have no room.
        """
        if heard := self._rung.intersection(owners):
            self._rung -= heard
            mailbox.hear(self._mail, *heard)

    def looked_into(self, owners: Iterable[str], more: Iterable[str], pauses: Mapping[str, Pause]) -> None:
        """Puts the owners that may have `more` mail behind all others. The rest sleep.

        Owners in `pauses` are looked into again when their pause ends, others when their bell rings.
        """
        for owner in owners:
            del self.awake[owner]
            self.new.pop(owner, None)
        self.awake |= dict.fromkeys(more)
        for owner, pause in pauses.items():
            self.look_in(owner, pause)

    def look_in(self, owner: str, pause: Pause) -> None:
        """Looks into the mailbox when the pause ends, or earlier if that was planned already."""
        at = time.monotonic() + pause.seconds
        if pause.is_closed:
            self._closed.add(owner)
            self._forget(owner)
            self._later[owner] = at
        elif pause.seconds <= 0:
            self.wake(owner)
        elif owner not in self._closed:
            self._later[owner] = min(at, self._later.get(owner, at))

    def rest_seconds(self) -> float:
        """Returns the seconds until the first pause ends; infinite if there is none."""
        return max(0.0, min(self._later.values(), default=math.inf) - time.monotonic())

    def drop(self, owners: Collection[str]) -> None:
        """Leaves the owners' mailboxes to other processes."""
        self.hear(owners)
        for owner in owners:
            self._forget(owner)

    def leave(self) -> None:
        """Rings for all owners that may have mail, now or later, so that other processes serve them."""
        self.listen()
        left = {*self.awake, *self._later, *self._rung}
        if left:
            mailbox.hear(self._mail, *left)
        for owner in left:
            mailbox.ring_again(self._mail, owner)

    def _forget(self, owner: str) -> None:
        self.awake.pop(owner, None)
        self.new.pop(owner, None)

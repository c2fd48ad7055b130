"""Which mailboxes a desk looks into: those that may have mail now, those that will at a time, and the bells of all."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Collection, Iterable, Mapping

from app import mailbox
from app.mailbox import Mail, Pause

HOLDING_BACK_SECONDS, LOOKS_EVERY_SECONDS = 0.1, 0.005


class Owners:
    """The owners that a desk was woken for. Used by the desk's thread; `ring` and `hold_back` by any.

    The order in each cycle is `listen`, `hear`, the claim and `looked_into`. So what is rung for while the desk claims
    is looked into in the next one.
    """

    def __init__(self, mail: Mail) -> None:
        self.awake: dict[str, None] = {}  # they may have mail now; the one to be served next comes first
        self.new: dict[str, None] = {}  # those of them that were rung for since they were last looked into
        self._mail = mail
        self._bells: deque[str] = deque()  # that rang since `listen`
        self._rung: set[str] = set()  # whose bells are not heard yet
        self._later: dict[str, float] = {}  # when to look again, on the monotonic clock
        self._closed: set[str] = set()  # those of them that have nothing to be had before

    def ring(self, owners: Iterable[str]) -> None:
        """Their bells have rung."""
        self._bells.extend(owners)

    def hold_back(self, most: int) -> None:
        """Waits while more than that wait for their first room: bells that stay in the queue are passed by new ones.

        Not for long: owners that hang, however many, must not keep the others from being rung for.
        """
        ends = time.monotonic() + HOLDING_BACK_SECONDS
        while len(self.new) + len(self._bells) > most and time.monotonic() < ends:
            time.sleep(LOOKS_EVERY_SECONDS)

    def listen(self) -> None:
        """Wakes those that were rung for, and those whose time has come."""
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
        """The owner may have mail now. One that is closed stays so."""
        if owner not in self._closed:
            self.awake.setdefault(owner)

    def hear(self, owners: Collection[str]) -> None:
        """Their mailboxes are about to be looked into: bells that ring from now on are new ones.

        A bell that is not heard keeps new mail from ringing again: that of an owner that is closed, or has no room.
        """
        if heard := self._rung.intersection(owners):
            self._rung -= heard
            mailbox.hear(self._mail, *heard)

    def looked_into(self, owners: Iterable[str], more: Iterable[str], pauses: Mapping[str, Pause]) -> None:
        """These were: those that may have `more` go behind all others, the rest sleeps, for as long as its pause."""
        for owner in owners:
            del self.awake[owner]
            self.new.pop(owner, None)
        self.awake |= dict.fromkeys(more)
        for owner, pause in pauses.items():
            self.look_in(owner, pause)

    def look_in(self, owner: str, pause: Pause) -> None:
        """Looks into the mailbox when the pause is over, or earlier if it was going to."""
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
        """How long it is until the first pause ends; infinite if there is none."""
        return max(0.0, min(self._later.values(), default=math.inf) - time.monotonic())

    def drop(self, owners: Collection[str]) -> None:
        """Others look into their mailboxes from now on."""
        self.hear(owners)
        for owner in owners:
            self._forget(owner)

    def leave(self) -> None:
        """Rings for all that may have mail, now or later, so that other processes take them over."""
        self.listen()
        left = {*self.awake, *self._later, *self._rung}
        if left:
            mailbox.hear(self._mail, *left)
        for owner in left:
            mailbox.ring_again(self._mail, owner)

    def _forget(self, owner: str) -> None:
        self.awake.pop(owner, None)
        self.new.pop(owner, None)

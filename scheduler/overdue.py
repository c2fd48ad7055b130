"""Overdue mail: rings for its owners, a capped batch at a time, so that an outage ends without a flood."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

from app import mailbox
from app.mailbox import Mail
from scheduler.signals import Signal

MOST_LOOKED_AT = 1000
# For how long one call goes on while there is more to look at.
SLICE_SECONDS = 0.1

Ring = Callable[[Collection[str]], int | None]


class Overdue:
    """A pass over the mailboxes of one kind of mail; a call goes on where the last one stopped, up to the end.

    `ring` is called with the owners of overdue mail and may return for how many it did something; by default the
    mail's own bell rings for each. The ages that are seen on the way are told to the signal.
    """

    def __init__(
        self, mail: Mail, overdue_seconds: float, ring: Ring | None = None, signal: Signal | None = None
    ) -> None:
        self._mail = mail
        self._overdue_seconds = overdue_seconds
        self._ring = ring or self._ring_each
        self._signal = signal or Signal(mail)
        self._after = ""
        self._oldest: dict[str, float] = {}  # of the mailboxes looked at since the beginning

    def __call__(self) -> int:
        """Rings, and returns for how many. A bell that is ringing already is not rung again."""
        ends = time.monotonic() + SLICE_SECONDS
        rung = self._look()
        while self._after and time.monotonic() < ends:
            rung += self._look()
        return rung

    def rest(self) -> None:
        """There is no mail: the next call begins anew."""
        self._after, self._oldest = "", {}
        self._signal.rest()

    def _look(self) -> int:
        owners, self._after, seconds = mailbox.overdue(self._mail, self._overdue_seconds, MOST_LOOKED_AT, self._after)
        self._oldest = {kind: max(oldest, self._oldest.get(kind, 0.0)) for kind, oldest in seconds.items()}
        self._signal.tell_oldest(self._oldest, is_part=bool(self._after))
        if not self._after:
            self._oldest = {}
        rung = self._ring(owners) if owners else 0
        return len(owners) if rung is None else rung

    def _ring_each(self, owners: Collection[str]) -> None:
        for owner in owners:
            mailbox.ring(self._mail, owner)

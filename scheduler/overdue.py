"""Overdue mail: rings for its owners, a capped batch at a time.

So an outage ends without a flood of bells.
"""

from __future__ import annotations

import time
from collections.abc import Collection

from app import mailbox
from app.domain.mails import Ring
from app.mailbox import Mail
from scheduler.signals import Signal

MOST_LOOKED_AT = 1000
# How long one call continues while there is more to look at.
SLICE_SECONDS = 0.1


class Overdue:
    """A pass over the mailboxes of one kind of mail. Each call continues where the last one stopped.

    `ring` is called with the owners of overdue mail; it may return how many of them it served. If `ring` is None, the
    mail's bell rings for each owner. `signal` shows the ages of the mail that the pass has seen.
    """

    def __init__(
        self, mail: Mail, overdue_seconds: float, ring: Ring | None = None, signal: Signal | None = None
    ) -> None:
        self._mail = mail
        self._overdue_seconds = overdue_seconds
        self._ring = ring or self._ring_each
        self._signal = signal or Signal(mail)
        self._after = ""
        self._oldest: dict[str, float] = {}  # seconds by kind, of the mailboxes seen in this pass

    def __call__(self) -> int:
        """Rings for overdue mail; returns for how many owners. Does not repeat a bell that is ringing."""
        ends = time.monotonic() + SLICE_SECONDS
        rung = self._look()
        while self._after and time.monotonic() < ends:
            rung += self._look()
        return rung

    def rest(self) -> None:
        """Ends the pass. Called in its place while there is no mail; the next call begins a new pass."""
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

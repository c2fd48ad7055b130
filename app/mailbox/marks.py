"""Marks: where to begin in a mailbox, so that queries skip the index entries of finished rows.

While any transaction holds a snapshot, even a read-only one, PostgreSQL keeps the index entries of rows that were
finished after it. A query for the first rows of a mailbox would read all of them. So each process remembers a mark for
each mailbox: a place below which there is no mail, and never will be. Two rules make that exact:

- A mark never passes the settled place, because a transaction can draw a low place and commit late. A transaction has
  its xid before it draws a position. So if a claim reads the last position drawn, and gets its own xid after that, all
  positions up to the one it read belong to lower xids. The position is settled once all lower xids have ended.
- A row becomes mail at a new position or at a negative one, and moves only up or to a negative one. Negative positions
  are below all marks, so every query for the head of a mailbox looks for them separately.

In mail that is claimed by `due_at`, a place is a time in microseconds, and the last one drawn is the current time. A
row becomes mail when it is due, so its time is new. MARGIN allows for a row whose time is a little older than the xid
of its transaction. If it is older than that, the row waits until a process reads the whole mailbox.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from functools import cache
from typing import NamedTuple

from app.mailbox.mail import FIRST, Mail

LOWEST = -FIRST
# How often a process reads a mailbox from its beginning: somebody may have changed rows by hand, or restored a backup.
WHOLE_SECONDS = 10.0
# A process with more marks forgets all of them.
MOST_MARKS = 10_000
# A mark of mail by time moves after this many claims from its mailbox, because looking for the first row before each
# claim would cost too much. A mailbox has no mark if fewer claims are made from it in WHOLE_SECONDS.
CLAIMS = 10
# Microseconds that the settled time stays behind. `waking.py` needs half of it.
MARGIN = 2_000_000
# Microseconds that the settled time may go back, because threads note their looks in any order.
SLACK = 10_000_000


class Look(NamedTuple):
    """Where a query begins in each mailbox, the place that was settled before the query, and the monotonic time."""

    starts: Mapping[str, int]
    settled: int
    at: float = 0.0


class Mark(NamedTuple):
    """`whole_at`: when the mailbox was last read from its beginning, on the monotonic clock.

    `claims`: claims by time since then. Each look rounds them down to a multiple of CLAIMS.
    """

    place: int = LOWEST
    whole_at: float = float("-inf")
    claims: int = 0

    def is_old(self, now: float) -> bool:
        """Whether the next look must read the mailbox from its beginning."""
        return self.whole_at <= now - WHOLE_SECONDS


class Marks:
    """The marks of this process for one kind of mail.

    `slack`: by how much the last place drawn may go back. Threads share the marks without a lock. A race can lower a
    mark, or lose a negative one; the next query finds that row.
    """

    def __init__(self, slack: int = 0) -> None:
        self._slack = slack
        self._marks: dict[str, Mark] = {}
        self._settled = LOWEST
        # A place, and the xid below which all must have ended before the place is settled.
        self._unsettled = LOWEST, 0

    def look(self, owners: Iterable[str]) -> Look:
        """Call this before the query that looks into the mailboxes."""
        settled, now = self._settled, time.monotonic()
        marks = {owner: self._mark(owner) for owner in owners}
        starts = {owner: LOWEST if mark.is_old(now) else mark.place for owner, mark in marks.items()}
        return Look(starts, settled, now)

    def behind(self, owners: Iterable[str]) -> list[str]:
        """Counts a claim by time from each mailbox. Returns the mailboxes to look at first, to move their marks.

        If one mark has to move, so do the marks of the other busy `owners`: their next looks are then one query, too.
        """
        now, is_time, busy = time.monotonic(), False, []
        for owner in owners:
            mark = self._mark(owner)
            is_old = mark.is_old(now)
            if is_old and mark.claims < CLAIMS:
                mark = Mark(whole_at=now)  # the claim reads from the beginning
            mark = mark._replace(claims=mark.claims + 1)
            self._put(owner, mark)
            if mark.claims >= CLAIMS:
                busy.append(owner)
                is_time = is_time or is_old or mark.claims % CLAIMS == 0
        return busy if is_time else []

    def starts(self, owners: Iterable[str]) -> dict[str, int]:
        """Returns where a claim by time begins in each mailbox. Call `behind` first."""
        return {owner: self._mark(owner).place for owner in owners}

    def note(self, look: Look, heads: Mapping[str, int]) -> None:
        """Moves the marks. `heads`: the place of the first row in each mailbox that is not empty."""
        for owner, start in look.starts.items():
            place = min(heads.get(owner, look.settled), look.settled)
            mark = self._mark(owner)
            if start == LOWEST:
                self._put(owner, Mark(place, look.at))
            else:
                self._put(owner, mark._replace(place=place, claims=mark.claims // CLAIMS * CLAIMS))

    def settle(self, drawn: int, xid: int, ended: int) -> int:
        """Moves the settled place, as far as a query has shown that it can move; returns it, or LOWEST.

        `drawn`: the last place drawn, read before the query got its `xid`. `ended`: the xid below which all had ended.
        """
        place, after = self._unsettled
        if drawn < self._settled - self._slack:  # a backup was restored
            self._marks.clear()
            self._settled, self._unsettled = LOWEST, (drawn, xid)
        elif ended >= after:
            self._settled, self._unsettled = place, (drawn, xid)
            return place
        return LOWEST

    def _mark(self, owner: str) -> Mark:
        return self._marks.get(owner, Mark())

    def _put(self, owner: str, mark: Mark) -> None:
        if len(self._marks) > MOST_MARKS:
            self._marks.clear()
        self._marks[owner] = mark


@cache
def of(mail: Mail) -> Marks:
    """Returns this process's marks for that kind of mail.

    The marks never move if the mail has none, because it is ordered by identifier.
    """
    return Marks(SLACK if mail.is_by_time else 0)

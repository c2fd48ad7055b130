"""Marks: where to begin in a mailbox, so that queries skip the index entries of finished rows.

While any transaction holds a snapshot, even a read-only one, PostgreSQL keeps the index entries of rows that were
finished after it. A query for the first rows of a mailbox would read all of them. So each process remembers a mark for
each mailbox: a position below which there is no mail, and never will be. Two rules make that exact:

- A mark never passes the settled position, because a transaction can draw a low position and commit late. A transaction
  has its xid before it draws a position. So if a claim reads the last position drawn, and gets its own xid after that,
  all positions up to the one it read belong to lower xids. The position is settled once all lower xids have ended.
- A row becomes mail at a new position or at a negative one, and moves only up or to a negative one. Negative positions
  are below all marks, so every query for the head of a mailbox looks for them separately.
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


class Look(NamedTuple):
    """Where a query begins in each mailbox, and the position that was settled before the query."""

    starts: Mapping[str, int]
    settled: int


class Mark(NamedTuple):
    """`whole_at`: when the mailbox was last read from its beginning, on the monotonic clock."""

    position: int = LOWEST
    whole_at: float = float("-inf")


class Marks:
    """The marks of this process for one kind of mail.

    `slack`: by how much the last place drawn may go back. Threads share the marks without a lock. A race can lower a
    mark, or lose a negative one; the next query finds that row.
    """

    def __init__(self) -> None:
        self._marks: dict[str, Mark] = {}
        self._settled = LOWEST
        # A position, and the xid below which all must have ended before the position is settled.
        self._unsettled = LOWEST, 0

    def look(self, owners: Iterable[str]) -> Look:
        """Call this before the query that looks into the mailboxes."""
        settled, since = self._settled, time.monotonic() - WHOLE_SECONDS
        marks = {owner: self._marks.get(owner, Mark()) for owner in owners}
        starts = {owner: mark.position if mark.whole_at > since else LOWEST for owner, mark in marks.items()}
        return Look(starts, settled)

    def note(self, look: Look, heads: Mapping[str, int]) -> None:
        """Moves the marks. `heads`: the position of the first row in each mailbox that is not empty."""
        if len(self._marks) > MOST_MARKS:
            self._marks.clear()
        for owner, start in look.starts.items():
            whole_at = time.monotonic() if start == LOWEST else self._marks.get(owner, Mark()).whole_at
            self._marks[owner] = Mark(min(heads.get(owner, look.settled), look.settled), whole_at)

    def settle(self, drawn: int, xid: int, ended: int) -> None:
        """Moves the settled position, as far as a claim has shown that it can move.

        `drawn`: the last position drawn, read before the claim got its `xid`. `ended`: the xid below which all had
        ended.
        """
        position, after = self._unsettled
        if drawn < self._settled:  # a backup was restored
            self._marks.clear()
            self._settled, self._unsettled = LOWEST, (drawn, xid)
        elif ended >= after:
            self._settled, self._unsettled = position, (drawn, xid)


@cache
def of(mail: Mail) -> Marks:
    """Returns this process's marks for that kind of mail.

    The marks never move if the mail has no `sequence`.
    """
    return Marks()

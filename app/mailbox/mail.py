"""A kind of mail, and its bells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from app import bells

# Subtracted from the position of a row that precedes all waiting rows. No position is as high.
FIRST = 1 << 62


_XIDS = "pg_current_xact_id()::text::bigint, (SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint)"


class Nothing(NamedTuple):
    """No further columns."""


@dataclass(frozen=True, slots=True)
class Mail:
    """A kind of mail: its table, its owners, and the order in which its rows are claimed.

    `order`: the column that orders the rows of a mailbox. One worker at a time has an `exclusive` mailbox, in which a
    row that is not due or is leased blocks the rows behind it. The SQL fragments refer to the row as `mail`.
    """

    table: str
    owner: str  # the column with the owner's identifier
    queue: str  # the queue on which its bells ring
    order: str = "due_at"
    exclusive: bool = False
    guard: str = "true"  # condition: the row's owner may be served now
    # The next four may read one column of the row, its owner: in some queries, `mail` has no other.
    owners: str = ""  # joins the table of owners, for the three below
    paused_until: str = "NULL::timestamptz"  # until when the owner is paused; its mail does not count as waiting
    paced_until: str = "NULL::timestamptz"  # until when the owner's rate limit or order holds its mail back
    slow: str = ""  # condition: the owner is in the slow lane; '' if there is no such lane
    alone: str = "false"  # condition, of exclusive mail: the row is claimed without others
    # For exclusive mail: whether rows may move before others, so that a leased row blocks only the rows behind it. Two
    # workers can then have leases in a mailbox, so each must work in a transaction that is `holding` its batch.
    is_overtaken: bool = False
    # The sequence of `position`, if the mail is ordered by it and keeps the rules of `marks.py`.
    sequence: str = ""
    on_claim: str = ""  # further SQL assignments that a claim makes
    carries: type[NamedTuple] = Nothing  # the further columns that a claim returns

    @property
    def is_free(self) -> str:
        """The SQL condition that no worker has the row."""
        return "(mail.leased_until > now()) IS NOT TRUE"

    @property
    def first(self) -> str:
        """The SQL expression for the negative position with which a row precedes all waiting rows."""
        return f"position - CASE WHEN position > 0 THEN {FIRST} ELSE 0 END"

    @property
    def drawn(self) -> str:
        """The SQL expression for the last position drawn; null if the transaction already has an xid."""
        last = f"SELECT last_value FROM {self.sequence} WHERE pg_current_xact_id_if_assigned() IS NULL"
        return f"({last})" if self.sequence else "NULL::bigint"

    @property
    def xids(self) -> str:
        """The SQL expressions for the transaction's xid, and the xid below which all have ended."""
        return _XIDS if self.sequence else "NULL, NULL"

    @property
    def now_and_xids(self) -> str:
        """For mail by time: like `drawn` and `xids`, with the current time as the last place."""
        return f"{_microseconds('now()')}, {_XIDS}" if self.is_by_time else "NULL, NULL, NULL"

    @property
    def is_by_time(self) -> bool:
        """Whether rows are claimed in the order of `due_at`."""
        return self.order == "due_at"

    @property
    def has_marks(self) -> bool:
        """Whether queries may skip finished rows, as `marks.py` describes."""
        return self.is_by_time or bool(self.sequence)

    @property
    def place(self) -> str:
        """The SQL expression for the row's place in its mailbox. For mail by time: microseconds since 1970."""
        return _microseconds("mail.due_at") if self.is_by_time else f"mail.{self.order}"

    @property
    def is_ahead(self) -> str:
        """The SQL condition that the row is not below the mark, `box.start`."""
        if self.is_by_time:
            return "mail.due_at >= timestamptz 'epoch' + greatest(box.start, 0) * interval '1 microsecond'"
        return f"mail.{self.order} >= box.start" if self.sequence else "true"

    @property
    def spans(self) -> str:
        """The SQL table of the positions that mail can have: all negative ones, and `box.start` and up."""
        values = f"({-FIRST}, -1), (greatest(box.start, 0), {FIRST})" if self.sequence else "(0, 0)"
        return f"(VALUES {values}) AS span(low, high)"

    @property
    def is_in_span(self) -> str:
        """The SQL condition that the row is in the present row of `spans`."""
        return f"mail.{self.order} BETWEEN span.low AND span.high" if self.sequence else self.is_ahead

    @property
    def blocked(self) -> str:
        """The SQL window of rows in an exclusive mailbox that block a row if one of them is leased."""
        return "up_to_it" if self.is_overtaken else "()"

    @property
    def is_there(self) -> str:
        """The SQL condition that any owner has mail, leased or not."""
        return f"EXISTS (SELECT FROM {self.table} WHERE due_at IS NOT NULL)"

    @property
    def kinds(self) -> tuple[str, ...]:
        """The names under which the mail is counted: its table's, and another for its slow lane."""
        return (self.table, f"slow_{self.table}") if self.slow else (self.table,)

    @property
    def kind(self) -> str:
        """The SQL expression for the name in `kinds` under which a row is counted."""
        return (
            f"CASE WHEN {self.slow} THEN 'slow_{self.table}' ELSE '{self.table}' END"
            if self.slow
            else f"'{self.table}'"
        )


@dataclass(frozen=True, slots=True)
class Claimed:
    """A row of mail under a lease. `claim`: the number of its claim.

    `carried`: the columns that the mail `carries`. `waited`: for how many seconds the row could have been claimed; NaN
    if unknown. `is_suspect`: a lease on it ended without an outcome, so its last worker may have died.
    """

    id: str
    owner: str
    claim: int
    carried: Any = ()
    waited: float = 0.0
    is_suspect: bool = False

    @property
    def key(self) -> tuple[str, int]:
        """Identifies the claim, even among claims of the same row."""
        return self.id, self.claim


def ring(mail: Mail, owner: str) -> None:
    """Tells a worker that the owner has mail. Call it after the commit. Never waits, never raises."""
    bells.ring(mail.queue, owner)


def ring_again(mail: Mail, owner: str) -> None:
    """Like `ring`, for mail that a worker leaves. The bell takes a random place among waiting bells."""
    bells.ring(mail.queue, owner, bells.Turn.AGAIN)


def hear(mail: Mail, *owners: str) -> None:
    """Clears the flags of the owners' bells, so that later mail rings again. Call it before claiming."""
    bells.hear(mail.queue, owners)


def _microseconds(time: str) -> str:
    return f"(extract(epoch FROM {time}) * 1000000)::bigint"

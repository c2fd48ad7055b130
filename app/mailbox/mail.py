"""A kind of mail, and its bells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from app import bells


class Nothing(NamedTuple):
    """No columns."""


@dataclass(frozen=True, slots=True)
class Mail:
    """A kind of mail: where it is kept, who owns it, and what is promised about taking it.

    `order`: the column by which the rows of a mailbox are taken. An `exclusive` mailbox is one worker's at a time, and
    a row of it that is not due or is leased blocks those behind it.
    The SQL fragments read the row as `mail`.
    """

    table: str
    owner: str  # the column that names the owner
    queue: str  # that its bells ring on
    order: str = "due_at"
    exclusive: bool = False
    guard: str = "true"  # holds while the row's owner may be served
    # The next four read of the row its owner alone.
    owners: str = ""  # joins the table of owners, for the other three
    paused_until: str = "NULL::timestamptz"  # until when the owner is not served on purpose
    paced_until: str = "NULL::timestamptz"  # until when it gets no more on purpose
    slow: str = ""  # holds while the owner is served in a lane for slow ones; '': there is none
    alone: str = "false"  # of exclusive mail: holds for a row that is claimed without others
    # Of exclusive mail: rows may be put before others, so a leased row blocks only the rows behind it. Its batches must
    # be worked on in a transaction that is `holding` them, which lets one worker at a time.
    is_overtaken: bool = False
    on_claim: str = ""  # further assignments that a claim makes
    carries: type[NamedTuple] = Nothing  # the further columns that a claim returns

    @property
    def is_free(self) -> str:
        """The condition that no worker has the row."""
        return "(mail.leased_until > now()) IS NOT TRUE"

    @property
    def blocked(self) -> str:
        """The rows of an exclusive mailbox that must not be leased for a row to be claimed: an SQL window."""
        return "up_to_it" if self.is_overtaken else "()"

    @property
    def is_there(self) -> str:
        """The condition that any owner has mail, whether or not a worker has it."""
        return f"EXISTS (SELECT FROM {self.table} WHERE due_at IS NOT NULL)"

    @property
    def kinds(self) -> tuple[str, ...]:
        """The names that it is counted under: its table's, and another for its slow lane."""
        return (self.table, f"slow_{self.table}") if self.slow else (self.table,)

    @property
    def kind(self) -> str:
        """Which of these names a row is counted under, in SQL."""
        return (
            f"CASE WHEN {self.slow} THEN 'slow_{self.table}' ELSE '{self.table}' END"
            if self.slow
            else f"'{self.table}'"
        )


@dataclass(frozen=True, slots=True)
class Claimed:
    """A row of mail under a lease.

    `claim` is the number it was claimed under, `carried` the columns that the mail `carries`, `waited` for how many
    seconds it could have been claimed (NaN: unknown). `is_suspect`: a lease on it ended without an outcome, so its last
    worker may have died.
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
    """Tells some worker that the owner has mail. Never waits and never fails; call it after the commit."""
    bells.ring(mail.queue, owner)


def ring_again(mail: Mail, owner: str) -> None:
    """The same for what a worker leaves in a mailbox: its bell takes a place among those that wait."""
    bells.ring(mail.queue, owner, bells.Turn.AGAIN)


def hear(mail: Mail, *owners: str) -> None:
    """A worker is about to look: a bell that rings from now on is a new one."""
    bells.hear(mail.queue, owners)

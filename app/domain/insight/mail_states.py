"""States of mail: how much of each kind is due, claimed, left by a dead worker, or postponed."""

from __future__ import annotations

from dataclasses import dataclass

from app import mailbox
from app.database import rows
from app.domain import mails
from app.domain.mails import MailKind
from app.mailbox import Mail

# Counting stops at this number.
MOST_COUNTED = 10_000
MAILBOXES = 1_000  # the most mailboxes that are examined in one statement


@dataclass(frozen=True, slots=True)
class State:
    """The mail of a kind, by its queue.

    Counts stop at MOST_COUNTED + 1, which means "more than MOST_COUNTED". `due`: rows that may be claimed or are.
    `oldest_seconds`: how long the oldest unclaimed row could have been claimed. `claimed`: rows that a worker has.
    `suspect`: rows whose lease ended without an outcome. `later`: rows that wait for their time, and are no mail yet.
    """

    queue: str
    due: int
    oldest_seconds: float
    claimed: int
    suspect: int
    later: int
    served_by: str


def look() -> list[State]:
    """Returns the current state of every kind of mail, of all workspaces."""
    return [_look_at(kind) for kind in mails.MAIL_KINDS]


def _look_at(kind: MailKind) -> State:
    mail = kind.mail
    [(due, claimed, suspect)] = rows(_DUE.format(mail=mail), (MOST_COUNTED + 1,))
    later = 0
    if kind.later is not None:
        [(later,)] = rows(_LATER.format(mail=mail, column=kind.later), (MOST_COUNTED + 1,))
    return State(mail.queue, due, _oldest_seconds(mail) if due else 0.0, claimed, suspect, later, kind.served_by)


def _oldest_seconds(mail: Mail) -> float:
    _, after, oldest = mailbox.overdue(mail, 0, MAILBOXES)
    highest = max(oldest.values())
    while after:
        _, after, oldest = mailbox.overdue(mail, 0, MAILBOXES, after)
        highest = max(highest, *oldest.values())
    return highest


_DUE = """
    SELECT count(*), count(*) FILTER (WHERE leased_until > now()), count(*) FILTER (WHERE leased_until <= now())
    FROM (SELECT leased_until FROM {mail.table} WHERE due_at IS NOT NULL LIMIT %s) AS due
"""
_LATER = """
    SELECT count(*) FROM (
        SELECT FROM {mail.table} WHERE {column} IS NOT NULL LIMIT %s) AS later
"""

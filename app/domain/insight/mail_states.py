"""States of mail: how much of each kind is due, claimed, left by a dead worker, or postponed."""

from __future__ import annotations

from dataclasses import dataclass

from app import mailbox
from app.database import rows
from app.domain.automations import http_requests
from app.domain.broadcasts import broadcasts
from app.domain.channels import arrivals, channel_requests, fetches, outboxes
from app.domain.conversations import read_receipts
from app.domain.deliveries import fan_out, lanes, replays, sweeps
from app.domain.jobs import jobs
from app.domain.triggers import run_states
from app.mailbox import Mail

# Counting stops at this number.
MOST_COUNTED = 10_000
MAILBOXES = 1_000  # the most mailboxes that are examined in one statement

# Each kind with the column of postponed mail, and the type of process that serves it. Both lanes of deliveries are in
# one table.
KINDS: tuple[tuple[Mail, str | None, str], ...] = (
    (jobs.MAIL, None, "writes"),
    (fan_out.MAIL, None, "writes"),
    (run_states.MAIL, run_states.WAITING.column, "automations"),
    (http_requests.MAIL, http_requests.WAITING.column, "automations"),
    (broadcasts.MAIL, broadcasts.WAITING.column, "automations"),
    (lanes.FAST, lanes.WAITING.column, "deliveries"),
    (sweeps.MAIL, None, "retries"),
    (replays.MAIL, replays.WAITING.column, "retries"),
    (channel_requests.MAIL, channel_requests.WAITING.column, "retries"),
    (outboxes.MAIL, "send_at", "messages"),
    (read_receipts.MAIL, read_receipts.WAITING.column, "messages"),
    (arrivals.MAIL, arrivals.WAITING.column, "messages"),
    (fetches.MAIL, fetches.WAITING.column, "messages"),
)


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
    return [_look_at(*kind) for kind in KINDS]


def _look_at(mail: Mail, later_column: str | None, process_type: str) -> State:
    [(due, claimed, suspect)] = rows(_DUE.format(mail=mail), (MOST_COUNTED + 1,))
    later = 0
    if later_column is not None:
        [(later,)] = rows(_LATER.format(mail=mail, column=later_column), (MOST_COUNTED + 1,))
    return State(mail.queue, due, _oldest_seconds(mail) if due else 0.0, claimed, suspect, later, process_type)


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

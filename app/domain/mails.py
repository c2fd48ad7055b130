"""All kinds of mail: who serves each, and how often the scheduler looks after it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

from app.domain.automations import http_requests
from app.domain.broadcasts import broadcasts
from app.domain.channels import arrivals, channel_requests, fetches, outboxes
from app.domain.conversations import read_receipts
from app.domain.deliveries import fan_out, lanes, replays, sweeps
from app.domain.jobs import jobs
from app.domain.triggers import run_states
from app.mailbox import Mail, Waiting

Ring = Callable[[Collection[str]], int | None]


class MailKind(NamedTuple):
    """A kind of mail. `name`: as in the names of its passes. `served_by`: the type of process.

    Mail whose bell was lost is found within about `overdue_seconds`. Then `ring` is called with the owners; if `ring`
    is None, the bell rings for each. Workers wake rows that wait; if none runs, the scheduler does so every
    `waking_seconds`.
    """

    mail: Mail
    name: str
    served_by: str
    overdue_seconds: float = 1
    waiting: Waiting | None = None
    waking_seconds: float = 0.5
    ring: Ring | None = None
    scheduled: str | None = None  # the column with the time at which another pass wakes a row

    @property
    def later(self) -> str | None:
        """The column with the time of rows that are no mail yet; None if there are no such rows."""
        return self.waiting.column if self.waiting else self.scheduled


# Bells ring within milliseconds, so mail that is due for longer has lost its bell or its worker. Both lanes of
# deliveries are in one table.
MAIL_KINDS = (
    MailKind(jobs.MAIL, "jobs", "writes"),
    MailKind(fan_out.MAIL, "fan_outs", "writes"),
    MailKind(run_states.MAIL, "runs", "automations", 0.5, run_states.WAITING),
    MailKind(http_requests.MAIL, "requests", "automations", 1, http_requests.WAITING, 1),
    MailKind(broadcasts.MAIL, "broadcasts", "automations", 1, broadcasts.WAITING),
    MailKind(lanes.FAST, "deliveries", "deliveries", 0.5, lanes.WAITING, ring=lanes.ring),
    MailKind(sweeps.MAIL, "sweeps", "retries"),
    MailKind(replays.MAIL, "replays", "retries", 1, replays.WAITING),
    MailKind(channel_requests.MAIL, "channel_requests", "retries", 1, channel_requests.WAITING, 1),
    # Nothing is sent over channels that are paused or not connected, so their bells do not ring.
    MailKind(outboxes.MAIL, "messages", "messages", 0.5, ring=outboxes.ring_connected, scheduled="send_at"),
    MailKind(read_receipts.MAIL, "read_receipts", "messages", 1, read_receipts.WAITING, 1),
    MailKind(arrivals.MAIL, "arrivals", "messages", 0.5, arrivals.WAITING),
    MailKind(fetches.MAIL, "fetches", "messages", 0.5, fetches.WAITING),
)

"""The timetable: which passes there are, and how often each is made."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

import structlog

from app import mailbox, metrics, partitions, presence
from app.database import DatabaseAway
from app.domain import writes
from app.domain.automations import controls, counts, http_requests, run_history
from app.domain.billing import invoices, usage
from app.domain.channels import allowances, arrivals, channel_requests, fetches, media, outboxes, visitors
from app.domain.conversations import channel_closings, interrupted_messages, read_receipts
from app.domain.deliveries import fan_out, lanes, replays, sweeps
from app.domain.insight import checks, figures, queues, updates
from app.domain.jobs import idempotency_keys, jobs
from app.domain.lifecycle import imports
from app.domain.people import links, notifications, sessions, sign_ins
from app.domain.triggers import run_states
from app.domain.webhooks import endpoints
from app.lib import clock
from scheduler.overdue import Overdue
from scheduler.usage_watch import UsageWatch

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Pass:
    """A task that the scheduler repeats. If it fails, the next one still runs."""

    name: str
    every_seconds: float
    make: Callable[[], int]
    due: float = field(default=0.0)
    # What came of it the last time it was made.
    made_at: datetime | None = field(default=None)
    seconds: float = field(default=0.0)
    found: int = field(default=0)
    error: str | None = field(default=None)

    def describe(self) -> dict[str, Any]:
        """What came of it, for the pages; `error` is None if it did not fail."""
        return {
            "name": self.name,
            "every_seconds": self.every_seconds,
            "made_at": self.made_at and self.made_at.isoformat(),
            "ms": round(self.seconds * 1000),
            "found": self.found,
            "error": self.error,
        }


class Timetable:
    """The passes of one leader. `run_due` never raises."""

    def __init__(self) -> None:
        self.passes = [
            # Bells ring within milliseconds; mail that is due for longer has lost its bell or its worker.
            Pass("overdue_jobs", 1, Overdue(jobs.MAIL, overdue_seconds=1)),
            Pass("overdue_fan_outs", 1, Overdue(fan_out.MAIL, overdue_seconds=1)),
            # Where no `automations` process runs, these wake runs and their requests, which then wait for one.
            Pass("waiting_runs", 0.5, partial(mailbox.wake_and_ring, run_states.WAITING)),
            Pass("waiting_requests", 1, partial(mailbox.wake_and_ring, http_requests.WAITING)),
            # A pause may end while a transaction that saw it still holds runs.
            Pass("held_runs", 0.5, controls.release_held),
            Pass("overdue_runs", 0.5, Overdue(run_states.MAIL, overdue_seconds=0.5)),
            Pass("overdue_requests", 1, Overdue(http_requests.MAIL, overdue_seconds=1)),
            # Where no `retries` process runs, this wakes them.
            Pass("waiting_deliveries", 0.5, lanes.wake_retries),
            # Where no `messages` process runs, this wakes receipts, which then wait for one.
            Pass("waiting_arrivals", 0.5, partial(mailbox.wake_and_ring, arrivals.WAITING)),
            Pass("overdue_arrivals", 0.5, Overdue(arrivals.MAIL, overdue_seconds=0.5)),
            # Where a bell was lost, this brings a delivery out within a second or two of its time.
            Pass("overdue_deliveries", 0.5, Overdue(lanes.FAST, overdue_seconds=0.5, ring=lanes.ring)),
            # Nothing is sent over channels that are paused or not connected.
            Pass("overdue_messages", 0.5, Overdue(outboxes.MAIL, overdue_seconds=0.5, ring=outboxes.ring_connected)),
            # Nothing claims what a dead worker left in a channel that is not connected.
            Pass("interrupted_messages", 5, interrupted_messages.settle),
            Pass("waiting_read_receipts", 1, partial(mailbox.wake_and_ring, read_receipts.WAITING)),
            Pass("overdue_read_receipts", 1, Overdue(read_receipts.MAIL, overdue_seconds=1)),
            Pass("overdue_sweeps", 1, Overdue(sweeps.MAIL, overdue_seconds=1)),
            # Where no `retries` process runs, this wakes replays, which then wait for one.
            Pass("waiting_replays", 0.5, partial(mailbox.wake_and_ring, replays.WAITING)),
            Pass("overdue_replays", 1, Overdue(replays.MAIL, overdue_seconds=1)),
            # The same for what providers are to be asked about channels.
            Pass("waiting_channel_requests", 1, partial(mailbox.wake_and_ring, channel_requests.WAITING)),
            Pass("overdue_channel_requests", 1, Overdue(channel_requests.MAIL, overdue_seconds=1)),
            Pass("deleted_channels", 1, channel_closings.end_waiting),
            # Nobody takes the mail of an endpoint that is stopped or deleted, so it becomes overdue.
            Pass("unserved_deliveries", 5, Overdue(lanes.FAST, overdue_seconds=1, ring=sweeps.begin_missing)),
            Pass("unknown_jobs", 5, writes.take_up_known),
            Pass("deleted_endpoints", 60, endpoints.drop_deleted),
            Pass("old_idempotency_keys", 60, idempotency_keys.forget_old),
            Pass("usage", 60, usage.count_up),
            Pass("invoices", 10, invoices.close),
            Pass("contacts_counted", 60, usage.forget_contacts),
            # Where no `messages` process runs, this wakes files to be fetched, which then wait for one.
            Pass("waiting_fetches", 0.5, partial(mailbox.wake_and_ring, fetches.WAITING)),
            Pass("overdue_fetches", 0.5, Overdue(fetches.MAIL, overdue_seconds=0.5)),
            Pass("old_arrivals", 10, arrivals.forget_old),
            Pass("old_imports", 60, imports.forget_old),
            Pass("expired_uploads", 10, media.delete_expired),
            Pass("expired_visitors", 10, visitors.delete_expired),
            Pass("old_sweeps", 60, sweeps.forget_old),
            Pass("old_replays", 10, replays.forget_old),
            Pass("counts", 1, counts.fold),
            Pass("usage_warnings", 30, UsageWatch()),
            Pass("new_notifications", 5, notifications.announce),
            Pass("old_notifications", 60, notifications.forget_old),
            Pass("old_sessions", 60, sessions.forget_old),
            Pass("old_sign_in_failures", 60, sign_ins.forget_old),
            Pass("old_stored_bytes", 60, allowances.forget_old),
            Pass("old_password_links", 60, links.forget_old),
            Pass("figures_of_outcomes", 5, figures.count_outcomes),
            Pass("figures_of_writes", 20, figures.count_writes),
            Pass("figures_of_queues", 15, queues.sample),
            Pass("old_figures", 60, figures.forget_old),
            Pass("old_updates", 10, updates.forget_old),
            Pass("checks", 60, _check),
            Pass("old_runs", 60, run_history.forget_old),
            Pass("partitions_ahead", 3600, partitions.make_ahead),
            Pass("expired_partitions", 3600, partitions.drop_expired),
        ]

    def run_due(self) -> None:
        """Makes the passes that are due, one after the other."""
        for each in self.passes:
            if time.monotonic() >= each.due:
                each.due = time.monotonic() + each.every_seconds
                self._run(each)
        presence.tell("passes", [each.describe() for each in self.passes])

    def _run(self, each: Pass) -> None:
        began, each.made_at, each.found, each.error = time.monotonic(), clock.now(), 0, None
        try:
            each.found = each.make()
        except DatabaseAway as error:
            metrics.PASSES_FAILED.labels(each.name).inc()
            log.warning("pass.interrupted", name=each.name, error=str(error).strip())
            each.error = "the database is away"
        except Exception as error:
            metrics.PASSES_FAILED.labels(each.name).inc()
            log.exception("pass.failed", name=each.name)
            each.error = type(error).__name__
        each.seconds = time.monotonic() - began
        if each.error is None:
            metrics.PASS_SECONDS.labels(each.name).observe(each.seconds)
            if each.found:
                log.info("pass.made", name=each.name, found=each.found, ms=round(each.seconds * 1000))


def _check() -> int:
    """Has the pages show what `python -m app check` says. Returns 0: a check does no work."""
    presence.tell("checks", [asdict(result) for result in checks.look_at_all()])
    return 0

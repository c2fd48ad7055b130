"""The timetable: which passes there are, and how often each one runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

import structlog

from app import mailbox, metrics, partitions, process_registry
from app.database import DatabaseAway, which_hold
from app.domain import mails, writes
from app.domain.assignment import assignments
from app.domain.automations import controls, counts, run_history
from app.domain.billing import invoices, usage, usage_warnings
from app.domain.broadcasts import broadcast_counts, broadcasts
from app.domain.channels import media, visitors
from app.domain.conversations import (
    channel_closings,
    conversation_counts,
    message_endings,
    messages,
    scheduled_messages,
    snoozes,
)
from app.domain.deliveries import lanes, replays, sweeps
from app.domain.insight import checks, figures, updates
from app.domain.people import notifications
from app.domain.reports import counting
from app.domain.retention import PASSES, delete_old
from app.domain.segments import schedules
from app.domain.triggers import due_starts, start_scans
from app.domain.webhooks import endpoints
from app.lib import clock
from app.mailbox import Mail
from scheduler.overdue import Overdue
from scheduler.signals import Signals

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Pass:
    """A task that the scheduler repeats. If a pass fails, the next one still runs.

    `condition`: SQL that holds while there may be something to do. Otherwise, `rest` is called instead of `make`.
    """

    name: str
    every_seconds: float
    make: Callable[[], int]
    condition: str = "true"
    rest: Callable[[], object] = lambda: None
    due: float = field(default=0.0)
    # The outcome of the last run.
    made_at: datetime | None = field(default=None)
    seconds: float = field(default=0.0)
    found: int = field(default=0)
    error: str | None = field(default=None)

    def describe(self) -> dict[str, Any]:
        """Describes the last run for the pages. `error` is None if it did not fail."""
        return {
            "name": self.name,
            "every_seconds": self.every_seconds,
            "made_at": self.made_at and self.made_at.isoformat(),
            "ms": round(self.seconds * 1000),
            "found": self.found,
            "error": self.error,
        }


class Round:
    """Makes a pass over many items, some of them on each call, and begins anew after the last.

    `go_on` is called with the end of the previous part ("" at the beginning). It returns the end of its part ("" for
    the last one), and how many items it handled.
    """

    def __init__(self, go_on: Callable[[str], tuple[str, int]]) -> None:
        self._go_on = go_on
        self._after = ""

    def __call__(self) -> int:
        """Does the next part. Returns how many items it handled."""
        self._after, done = self._go_on(self._after)
        return done


class Timetable:
    """The passes of one leader. `run_due` never raises."""

    def __init__(self) -> None:
        self.signals = Signals()
        self.passes = [
            *(each for kind in mails.MAIL_KINDS for each in self._passes_of(kind)),
            Pass("due_starts", 0.5, due_starts.start_some, due_starts.IS_ANY_DUE),
            Pass("schedules", 0.5, schedules.start_some, schedules.IS_ANY_DUE),
            Pass("start_scans", 0.5, start_scans.go_on, start_scans.IS_ANY_UNDER_WAY),
            # Releases runs that were held late: a transaction that saw a pause may hold a run after its end.
            Pass("held_runs", 0.5, controls.release_held, controls.IS_ANY_HELD),
            # Settles what a dead worker left in a channel that is not connected, because no worker claims it.
            Pass("interrupted_messages", 5, message_endings.settle_interrupted),
            Pass("due_messages", 0.5, scheduled_messages.queue_some, scheduled_messages.IS_ANY_DUE),
            Pass("snoozed_conversations", 1, snoozes.wake_some, snoozes.IS_ANY_OVER),
            Pass("assignments", 0.5, Round(assignments.assign_some), assignments.IS_ANY_BALANCED),
            Pass("deleted_channels", 1, channel_closings.end_waiting, channel_closings.IS_ANY_DELETED),
            # No worker takes the mail of an endpoint that is stopped or deleted, so that mail becomes overdue.
            self._overdue("unserved_deliveries", 5, lanes.FAST, sweeps.begin_missing),
            Pass("unknown_jobs", 5, writes.take_up_known),
            Pass("deleted_endpoints", 60, endpoints.drop_deleted),
            Pass("usage", 60, usage.count_up),
            Pass("invoices", 10, invoices.close),
            Pass("old_provider_payloads", 60, messages.forget_payloads),
            Pass("left_entries", 60, schedules.drop_left),
            Pass("expired_uploads", 10, media.delete_expired),
            Pass("expired_visitors", 10, visitors.delete_expired),
            Pass("old_replays", 10, replays.forget_old),
            Pass("old_broadcasts", 10, broadcasts.forget_old),
            Pass("counts", 1, counts.fold, counts.IS_ANY_NEW),
            Pass("conversation_counts", 1, conversation_counts.fold, conversation_counts.IS_ANY_NEW),
            Pass("broadcast_counts", 1, broadcast_counts.fold, broadcast_counts.IS_ANY_NEW),
            Pass("usage_warnings", 30, Round(usage_warnings.warn)),
            Pass("new_notifications", 5, notifications.announce),
            Pass("figures_of_outcomes", 5, figures.count_outcomes),
            Pass("figures_of_writes", 20, figures.count_writes),
            Pass("waiting_mail", 2, self.signals.count),
            Pass("figures_of_queues", 15, self.signals.sample),
            Pass("figures_of_inbox", 10, counting.count_up),
            Pass("old_updates", 10, updates.forget_old),
            Pass("checks", 60, _check),
            *(Pass(name, 10 if name == "old_arrivals" else 60, partial(delete_old, name)) for name in PASSES),
            Pass("old_runs", 60, run_history.forget_old),
            Pass("partitions_ahead", 3600, partitions.make_ahead),
            Pass("expired_partitions", 3600, partitions.drop_expired),
        ]

    def run_due(self, leads: Callable[[], bool] = lambda: True) -> None:
        """Runs the due passes, one after the other, as long as this process leads. Never raises."""
        holding = self._holding()
        for each in self.passes:
            # Without the database, every pass would wait for it, and this process would claim to lead for minutes.
            if not leads():
                break
            if time.monotonic() >= each.due:
                each.due = time.monotonic() + each.every_seconds
                self._run(each, is_at_rest=each.condition not in holding)
        process_registry.tell("passes", [each.describe() for each in self.passes])

    def _holding(self) -> set[str]:
        """Returns the conditions that hold.

        One statement checks all conditions, because most passes have nothing to do.
        """
        conditions = sorted({each.condition for each in self.passes})
        try:
            return which_hold(conditions)
        except Exception:
            log.exception("passes.not_asked")
            return set(conditions)  # the passes themselves report what is wrong

    def _run(self, each: Pass, *, is_at_rest: bool) -> None:
        began, each.made_at, each.found, each.error = time.monotonic(), clock.now(), 0, None
        try:
            if is_at_rest:
                each.rest()
            else:
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

    def _passes_of(self, kind: mails.MailKind) -> Iterator[Pass]:
        if waiting := kind.waiting:
            wake = partial(mailbox.wake_and_ring, waiting)
            yield Pass(f"waiting_{kind.name}", kind.waking_seconds, wake, waiting.is_over)
        yield self._overdue(f"overdue_{kind.name}", kind.overdue_seconds, kind.mail, kind.ring)

    def _overdue(self, name: str, every_seconds: float, mail: Mail, ring: mails.Ring | None) -> Pass:
        look = Overdue(mail, min(every_seconds, 1), ring, self.signals.of(mail))
        return Pass(name, every_seconds, look, mail.is_there, look.rest)


def _check() -> int:
    """Stores the results of `python -m app check` for the pages. Returns 0: a check does no work."""
    process_registry.tell("checks", [asdict(result) for result in checks.look_at_all()])
    return 0

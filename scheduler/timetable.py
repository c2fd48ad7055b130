"""The timetable: which passes there are, and how often each one runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

import structlog

from app import mailbox, metrics, partitions, presence
from app.database import DatabaseAway, which_hold
from app.domain import writes
from app.domain.assignment import assignments
from app.domain.automations import controls, counts, http_requests, run_history
from app.domain.automations.editing import clipboards
from app.domain.billing import invoices, usage, usage_warnings
from app.domain.broadcasts import broadcasts, tallies
from app.domain.channels import allowances, arrivals, channel_requests, fetches, media, outboxes, visitors
from app.domain.conversations import (
    channel_closings,
    conversation_counts,
    due_messages,
    interrupted_messages,
    messages,
    read_receipts,
    snoozes,
)
from app.domain.deliveries import fan_out, lanes, replays, sweeps
from app.domain.inbox import selections
from app.domain.insight import checks, figures, refused_requests, updates
from app.domain.jobs import idempotency_keys, jobs
from app.domain.lifecycle import imports
from app.domain.people import links, notifications, sessions, sign_ins
from app.domain.reports import counting
from app.domain.segments import entries, schedules
from app.domain.triggers import due_starts, run_states, start_scans
from app.domain.webhooks import endpoints
from app.lib import clock
from app.mailbox import Mail, Waiting
from scheduler.overdue import Overdue, Ring
from scheduler.rounds import Round
from scheduler.signals import Signals

log = structlog.get_logger(__name__)

# Looks at all mail take long while a transaction holds a snapshot, because the index entries of finished rows stay.
# With this pause, each takes at most a sixth of the time; lost bells then ring later.
PAUSE = 5


@dataclass(slots=True)
class Pass:
    """A task that the scheduler repeats. If a pass fails, the next one still runs.

    `condition`: SQL that holds while there may be something to do. Otherwise, `rest` is called instead of `make`.
    `pause`: how many times as long as the pass took, the scheduler waits at least before the next one.
    """

    name: str
    every_seconds: float
    make: Callable[[], int]
    condition: str = "true"
    rest: Callable[[], object] = lambda: None
    pause: int = 0
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


class Timetable:
    """The passes of one leader. `run_due` never raises."""

    def __init__(self) -> None:
        self.signals = Signals()
        self.passes = [
            # Bells ring within milliseconds, so mail that is due for longer has lost its bell or its worker.
            self._overdue("overdue_jobs", 1, jobs.MAIL),
            self._overdue("overdue_fan_outs", 1, fan_out.MAIL),
            # Usually the `automations` processes wake runs and their requests. If none runs, these passes do, so that
            # the rows wait as due mail.
            _waking("waiting_runs", 0.5, run_states.WAITING),
            _waking("waiting_requests", 1, http_requests.WAITING),
            Pass("due_starts", 0.5, due_starts.start_some, due_starts.IS_ANY_DUE),
            Pass("schedules", 0.5, schedules.start_some, schedules.IS_ANY_DUE),
            Pass("start_scans", 0.5, start_scans.go_on, start_scans.IS_ANY_UNDER_WAY),
            # Releases runs that were held late: a transaction that saw a pause may hold a run after its end.
            Pass("held_runs", 0.5, controls.release_held, controls.IS_ANY_HELD),
            self._overdue("overdue_runs", 0.5, run_states.MAIL),
            self._overdue("overdue_requests", 1, http_requests.MAIL),
            # If no `retries` process runs, this wakes deliveries.
            _waking("waiting_deliveries", 0.5, lanes.WAITING),
            # Usually the `messages` processes wake receipts. If none runs, this does, so that the receipts wait
            # as due mail.
            _waking("waiting_arrivals", 0.5, arrivals.WAITING),
            self._overdue("overdue_arrivals", 0.5, arrivals.MAIL),
            # If a bell was lost, this sends the delivery within a second or two of its time.
            self._overdue("overdue_deliveries", 0.5, lanes.FAST, lanes.ring),
            # Rings only for connected channels: nothing is sent over channels that are paused or not connected.
            self._overdue("overdue_messages", 0.5, outboxes.MAIL, outboxes.ring_connected),
            # Settles what a dead worker left in a channel that is not connected, because no worker claims it.
            Pass("interrupted_messages", 5, interrupted_messages.settle),
            Pass("due_messages", 0.5, due_messages.queue_some, due_messages.IS_ANY_DUE),
            Pass("snoozed_conversations", 1, snoozes.wake_some, snoozes.IS_ANY_OVER),
            Pass("assignments", 0.5, Round(assignments.assign_some), assignments.IS_ANY_BALANCED),
            _waking("waiting_read_receipts", 1, read_receipts.WAITING),
            self._overdue("overdue_read_receipts", 1, read_receipts.MAIL),
            self._overdue("overdue_sweeps", 1, sweeps.MAIL),
            # Usually the `retries` processes wake replays. If none runs, this does, so that the replays wait as due
            # mail.
            _waking("waiting_replays", 0.5, replays.WAITING),
            self._overdue("overdue_replays", 1, replays.MAIL),
            # Usually the `automations` processes wake broadcasts. If none runs, this does, so that the broadcasts wait
            # as due mail.
            _waking("waiting_broadcasts", 0.5, broadcasts.WAITING),
            self._overdue("overdue_broadcasts", 1, broadcasts.MAIL),
            # If no `retries` process runs, this wakes requests to providers about channels.
            _waking("waiting_channel_requests", 1, channel_requests.WAITING),
            self._overdue("overdue_channel_requests", 1, channel_requests.MAIL),
            Pass("deleted_channels", 1, channel_closings.end_waiting, channel_closings.IS_ANY_DELETED),
            # No worker takes the mail of an endpoint that is stopped or deleted, so that mail becomes overdue.
            self._overdue("unserved_deliveries", 5, lanes.FAST, sweeps.begin_missing),
            Pass("unknown_jobs", 5, writes.take_up_known),
            Pass("deleted_endpoints", 60, endpoints.drop_deleted),
            Pass("old_idempotency_keys", 60, idempotency_keys.forget_old),
            Pass("usage", 60, usage.count_up),
            Pass("invoices", 10, invoices.close),
            Pass("contacts_counted", 60, usage.forget_contacts),
            # Usually the `messages` processes wake files to be fetched. If none runs, this does, so that the files wait
            # as due mail.
            _waking("waiting_fetches", 0.5, fetches.WAITING),
            self._overdue("overdue_fetches", 0.5, fetches.MAIL),
            Pass("old_arrivals", 10, arrivals.forget_old),
            Pass("old_provider_payloads", 60, messages.forget_payloads),
            Pass("left_entries", 60, entries.drop_left),
            Pass("old_imports", 60, imports.forget_old),
            Pass("expired_uploads", 10, media.delete_expired),
            Pass("expired_visitors", 10, visitors.delete_expired),
            Pass("old_refused_requests", 60, refused_requests.forget_old),
            Pass("old_sweeps", 60, sweeps.forget_old),
            Pass("old_replays", 10, replays.forget_old),
            Pass("old_broadcasts", 10, broadcasts.forget_old),
            Pass("old_selections", 60, selections.forget_old),
            Pass("old_step_clipboards", 60, clipboards.forget_old),
            Pass("counts", 1, counts.fold, counts.IS_ANY_NEW),
            Pass("conversation_counts", 1, conversation_counts.fold, conversation_counts.IS_ANY_NEW),
            Pass("broadcast_counts", 1, tallies.fold, tallies.IS_ANY_NEW),
            Pass("old_counts", 60, counts.forget_old),
            Pass("usage_warnings", 30, Round(usage_warnings.warn)),
            Pass("new_notifications", 5, notifications.announce),
            Pass("old_notifications", 60, notifications.forget_old),
            Pass("old_sessions", 60, sessions.forget_old),
            Pass("old_sign_in_failures", 60, sign_ins.forget_old),
            Pass("old_stored_bytes", 60, allowances.forget_old),
            Pass("old_password_links", 60, links.forget_old),
            Pass("figures_of_outcomes", 5, figures.count_outcomes),
            Pass("figures_of_writes", 20, figures.count_writes),
            Pass("waiting_mail", 2, self.signals.count, pause=PAUSE),
            Pass("figures_of_queues", 15, self.signals.sample),
            Pass("figures_of_inbox", 10, counting.count_up),
            Pass("old_figures", 60, figures.forget_old),
            Pass("old_figures_of_inbox", 60, counting.forget_old),
            Pass("old_updates", 10, updates.forget_old),
            Pass("checks", 60, _check),
            Pass("old_runs", 60, run_history.forget_old),
            Pass("partitions_ahead", 3600, partitions.make_ahead),
            Pass("expired_partitions", 3600, partitions.drop_expired),
        ]

    def run_due(self, leads: Callable[[], bool] = lambda: True) -> None:
        """Runs the due passes, one after the other, as long as this process leads. Never raises."""
        due = [each for each in self.passes if time.monotonic() >= each.due]
        holding = self._holding(due)
        for each in due:
            # Without the database, every pass would wait for it, and this process would claim to lead for minutes.
            if not leads():
                break
            each.due = time.monotonic() + each.every_seconds
            self._run(each, is_at_rest=each.condition not in holding)
            each.due = max(each.due, time.monotonic() + each.pause * each.seconds)
        presence.tell("passes", [each.describe() for each in self.passes])

    def _holding(self, due: Sequence[Pass]) -> set[str]:
        """Returns the conditions that hold, of the passes that are `due`.

        One statement checks them, because most passes have nothing to do.
        """
        conditions = sorted({each.condition for each in self.passes})
        try:
            return which_hold(conditions, {each.condition for each in due})
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

    def _overdue(self, name: str, every_seconds: float, mail: Mail, ring: Ring | None = None) -> Pass:
        look = Overdue(mail, min(every_seconds, 1), ring, self.signals.of(mail))
        return Pass(name, every_seconds, look, mail.is_there, look.rest, PAUSE)


def _waking(name: str, every_seconds: float, waiting: Waiting) -> Pass:
    return Pass(name, every_seconds, partial(mailbox.wake_and_ring, waiting), waiting.is_over)


def _check() -> int:
    """Has the pages show the results of `python -m app check`. Returns 0: a check does no work."""
    presence.tell("checks", [asdict(result) for result in checks.look_at_all()])
    return 0

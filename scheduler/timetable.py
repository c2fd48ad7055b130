"""The timetable: which passes there are, and how often each is made."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import structlog

from app import metrics, partitions
from app.database import DatabaseAway
from app.domain import endpoints, imports, invoices, jobs, lanes, sweeps, usage
from scheduler.rounds import Round

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Pass:
    """Something that is looked after every so many seconds. It may fail; the next one runs."""

    name: str
    every_seconds: float
    make: Callable[[], int]
    due: float = field(default=0.0)


class Timetable:
    """The passes of one leader. `run_due` never raises."""

    def __init__(self) -> None:
        self.passes = [
            # Bells ring within milliseconds; mail that is due for longer has lost its bell or its worker.
            Pass("overdue_jobs", 1, Round(jobs.MAIL, overdue_seconds=1)),
            # Where the bell of a retry was lost, or was early, this brings it out within a second or two of its time.
            Pass("overdue_deliveries", 0.5, Round(lanes.FAST, overdue_seconds=0.5, ring=lanes.ring)),
            Pass("overdue_sweeps", 1, Round(sweeps.MAIL, overdue_seconds=1)),
            # Nobody takes the mail of an endpoint that is stopped or deleted, so it becomes overdue.
            Pass("unserved_deliveries", 5, Round(lanes.FAST, overdue_seconds=1, ring=sweeps.begin_missing)),
            Pass("deleted_endpoints", 60, endpoints.drop_deleted),
            Pass("old_idempotency_keys", 60, jobs.forget_old_keys),
            Pass("usage", 60, usage.count_up),
            Pass("invoices", 10, invoices.close),
            Pass("contacts_counted", 60, usage.forget_contacts),
            Pass("old_imports", 60, imports.forget_old),
            Pass("old_sweeps", 60, sweeps.forget_old),
            Pass("partitions_ahead", 3600, partitions.make_ahead),
            Pass("expired_partitions", 3600, partitions.drop_expired),
        ]

    def run_due(self) -> None:
        for each in self.passes:
            if time.monotonic() >= each.due:
                each.due = time.monotonic() + each.every_seconds
                self._run(each)

    def _run(self, each: Pass) -> None:
        began = time.monotonic()
        try:
            found = each.make()
        except DatabaseAway as error:
            metrics.PASSES_FAILED.labels(each.name).inc()
            log.warning("pass.interrupted", name=each.name, error=str(error).strip())
        except Exception:
            metrics.PASSES_FAILED.labels(each.name).inc()
            log.exception("pass.failed", name=each.name)
        else:
            seconds = time.monotonic() - began
            metrics.PASS_SECONDS.labels(each.name).observe(seconds)
            if found:
                log.info("pass.made", name=each.name, found=found, ms=round(seconds * 1000))

"""`python -m scheduler`: the loop of the scheduler."""

from __future__ import annotations

import signal
import threading
import time

import structlog

from app import bells, database, logs, metrics, process_registry
from app.config import settings_or_exit
from app.outbound import smtp
from app.sql import schema
from scheduler import mailing
from scheduler.leadership import Leadership
from scheduler.timetable import Timetable

log = structlog.get_logger(__name__)

TICK_SECONDS = 0.5


def main() -> None:
    """Runs the scheduler until SIGTERM or SIGINT. First waits until no migration is pending.

    If a setting is wrong, prints its name and exits.
    """
    configured = settings_or_exit()
    logs.configure("scheduler")
    schema.wait()
    database.connect()
    process_registry.announce("scheduler")
    metrics.serve(configured.metrics_host, configured.metrics_port, "scheduler")
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    run(stopping)


def run(stopping: threading.Event) -> None:
    """Runs the due passes whenever this process leads, until `stopping` is set."""
    bells.ring_for_overdue()
    leadership, timetable = Leadership(), Timetable()
    mailer = mailing.start(stopping)
    log.info("scheduler.started")
    while not stopping.is_set():
        began = time.monotonic()
        if leadership.is_held():
            metrics.LEADS.set(1)
            process_registry.tell("leads", True)
            timetable.run_due(leadership.is_held)
        else:
            metrics.LEADS.set(0)
            process_registry.tell("leads", False)
            metrics.OVERDUE_SECONDS.clear()  # only the leader reports this and the next gauge
            metrics.WAITING.clear()
        stopping.wait(max(0.0, TICK_SECONDS - (time.monotonic() - began)))
    leadership.give_up()
    if mailer is not None:
        mailer.join(smtp.TIMEOUT_SECONDS)  # an e-mail is sent again if the mailer ends before the server confirms it
    bells.flush()
    log.info("scheduler.stopped")


if __name__ == "__main__":
    main()

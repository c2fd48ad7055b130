"""Wakes mail whose time has come, in a thread of its own, as long as the worker runs."""

from __future__ import annotations

import threading

import structlog
from dramatiq import Broker, Worker
from dramatiq.middleware import Middleware

from app import mailbox
from app.database import DatabaseAway
from app.lib import vitals
from app.mailbox import Waiting
from app.mailbox.waking import BATCH

log = structlog.get_logger(__name__)

EVERY_SECONDS = 0.25


class Waking(Middleware):
    """Looks for due rows of the given kinds four times a second, and at once again after a full batch.

    Goes on while the database is away. Any number of processes may do this; one of them at a time does the work.
    """

    def __init__(self, *kinds: Waiting) -> None:
        self._kinds = kinds
        self._stopping = threading.Event()

    def after_worker_boot(self, broker: Broker, worker: Worker) -> None:
        vitals.start(self._run, "waking")

    def before_worker_shutdown(self, broker: Broker, worker: Worker) -> None:
        self._stopping.set()

    def _run(self) -> None:
        while not self._stopping.is_set():
            woken = 0
            try:
                woken = mailbox.wake_all(*self._kinds)
            except DatabaseAway as error:
                log.warning("waking.waits_for_database", error=str(error).strip())
            except Exception:
                log.exception("waking.failed")
            if woken < BATCH:
                self._stopping.wait(EVERY_SECONDS)

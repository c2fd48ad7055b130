"""Wakes mail whose time has come, in a thread of its own, as long as the worker runs."""

from __future__ import annotations

import threading
from collections.abc import Callable

import structlog
from dramatiq import Broker, Worker
from dramatiq.middleware import Middleware

from app.database import DatabaseAway
from app.lib import vitals
from app.mailbox.waking import BATCH

log = structlog.get_logger(__name__)

EVERY_SECONDS = 0.25


class Waking(Middleware):
    """Calls `wake` four times a second, and at once again after a full batch.

    `wake` returns how many rows it woke. Goes on while the database is away. Any number of processes may do this; one
    of them at a time does the work.
    """

    def __init__(self, wake: Callable[[], int]) -> None:
        self._wake = wake
        self._stopping = threading.Event()

    def after_worker_boot(self, broker: Broker, worker: Worker) -> None:
        vitals.start(self._run, "waking")

    def before_worker_shutdown(self, broker: Broker, worker: Worker) -> None:
        self._stopping.set()

    def _run(self) -> None:
        while not self._stopping.is_set():
            woken = 0
            try:
                woken = self._wake()
            except DatabaseAway as error:
                log.warning("waking.waits_for_database", error=str(error).strip())
            except Exception:
                log.exception("waking.failed")
            if woken < BATCH:
                self._stopping.wait(EVERY_SECONDS)

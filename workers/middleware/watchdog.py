"""Ends a process that cannot hear bells any more, so that its supervisor starts another."""

from __future__ import annotations

import threading

from dramatiq import Broker, Worker
from dramatiq.middleware import Middleware

from app.lib import vitals

LOOKS_EVERY_SECONDS = 1.0


class Watchdog(Middleware):
    """Ends the process if one of the worker's threads dies.

    Dramatiq does not replace a dead thread, and the process would go on looking healthy.
    """

    def __init__(self) -> None:
        self._stopping = threading.Event()

    def after_worker_boot(self, broker: Broker, worker: Worker) -> None:
        vitals.start(self._watch, "watchdog", worker)

    def before_worker_shutdown(self, broker: Broker, worker: Worker) -> None:
        self._stopping.set()

    def _watch(self, worker: Worker) -> None:
        while not self._stopping.wait(LOOKS_EVERY_SECONDS):
            dead = [thread.name for thread in (*worker.consumers.values(), *worker.workers) if not thread.is_alive()]
            if dead and not self._stopping.is_set():
                vitals.end(threads=dead)

"""Ends a process that cannot hear bells any more, so that its supervisor starts another."""

from __future__ import annotations

import os
import threading

import structlog
from dramatiq import Broker, Worker
from dramatiq.middleware import Middleware

log = structlog.get_logger(__name__)

LOOKS_EVERY_SECONDS = 1.0
EXIT_CODE = 70  # EX_SOFTWARE


class Watchdog(Middleware):
    """Watches the worker's threads: Dramatiq replaces none that dies, and the process goes on looking healthy."""

    def __init__(self) -> None:
        self._stopping = threading.Event()

    def after_worker_boot(self, broker: Broker, worker: Worker) -> None:
        threading.Thread(target=self._watch, args=(worker,), name="watchdog", daemon=True).start()

    def before_worker_shutdown(self, broker: Broker, worker: Worker) -> None:
        self._stopping.set()

    def _watch(self, worker: Worker) -> None:
        while not self._stopping.wait(LOOKS_EVERY_SECONDS):
            dead = [thread.name for thread in (*worker.consumers.values(), *worker.workers) if not thread.is_alive()]
            if dead and not self._stopping.is_set():
                log.critical("worker.deaf", threads=dead)
                os._exit(EXIT_CODE)

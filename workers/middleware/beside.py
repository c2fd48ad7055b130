"""Runs a process of the Procfile, such as the scheduler, in a thread of the worker."""

from __future__ import annotations

import threading
from collections.abc import Callable

from dramatiq import Broker, Worker
from dramatiq.middleware import Middleware

from app.lib import vitals


class Beside(Middleware):
    """Calls `run` in a thread when the worker starts. If `run` raises, the process ends.

    `run` gets an event, which is set when the worker ends. It must return soon after.
    """

    def __init__(self, process_type: str, run: Callable[[threading.Event], None]) -> None:
        self.process_type = process_type
        self._run = run
        self._stopping = threading.Event()

    def after_worker_boot(self, broker: Broker, worker: Worker) -> None:
        self._thread = vitals.start(self._run, self.process_type, self._stopping)

    def before_worker_shutdown(self, broker: Broker, worker: Worker) -> None:
        self._stopping.set()

    def after_worker_shutdown(self, broker: Broker, worker: Worker) -> None:
        self._thread.join()

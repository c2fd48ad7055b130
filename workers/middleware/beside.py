"""Starts and ends what runs in a worker beside its actors: other processes, and dispatchers."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from dramatiq import Broker, Worker
from dramatiq.middleware import Middleware

from app.lib import vitals
from workers.dispatcher import Dispatcher


class Beside(Middleware):
    """Runs a process of the Procfile, such as the scheduler, in a thread of the worker.

    Calls `run` when the worker starts, with an event that is set when the worker ends. `run` must return soon after
    that. If `run` raises, the process ends.
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


class Closing(Middleware):
    """Ends the process only after all requests of the dispatcher have ended and are recorded.

    All dispatchers of a process begin to stop at once. If they stopped one after the other, the last would not end in
    time, and would be killed.
    """

    def __init__(self, dispatcher: Dispatcher[Any, Any]) -> None:
        self._dispatcher = dispatcher

    def before_worker_shutdown(self, broker: Broker, worker: Worker) -> None:
        self._dispatcher.begin_to_stop()

    def after_worker_shutdown(self, broker: Broker, worker: Worker) -> None:
        self._dispatcher.stop()

"""Ends the dispatchers' work outside the actors before the process ends."""

from __future__ import annotations

from typing import Any

from dramatiq import Broker, Worker
from dramatiq.middleware import Middleware

from workers.dispatcher import Dispatcher


class Closing(Middleware):
    """Ends the process only after all requests of the dispatcher have ended and are recorded.

    All dispatchers of a process begin to stop at once. If they stopped one after the other, the last would not end in
    time, and would be killed.
    """

    def __init__(self, dispatcher: Dispatcher[Any, Any]) -> None:
        self._desk = dispatcher

    def before_worker_shutdown(self, broker: Broker, worker: Worker) -> None:
        self._desk.begin_to_stop()

    def after_worker_shutdown(self, broker: Broker, worker: Worker) -> None:
        self._desk.stop()

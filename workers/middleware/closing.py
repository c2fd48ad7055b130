"""Ends the desks' work outside the actors before the process ends."""

from __future__ import annotations

from typing import Any

from dramatiq import Broker, Worker
from dramatiq.middleware import Middleware

from workers.desk import Desk


class Closing(Middleware):
    """Ends the process only after all requests of the desk have ended and are recorded.

    All desks of a process begin to stop at once. If they stopped one after the other, the last would not end in time,
    and would be killed.
    """

    def __init__(self, desk: Desk[Any, Any]) -> None:
        self._desk = desk

    def before_worker_shutdown(self, broker: Broker, worker: Worker) -> None:
        self._desk.begin_to_stop()

    def after_worker_shutdown(self, broker: Broker, worker: Worker) -> None:
        self._desk.stop()

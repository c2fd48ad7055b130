"""Ends what goes on outside the actors, while they end, before the process does."""

from __future__ import annotations

from typing import Any

from dramatiq import Broker, Worker
from dramatiq.middleware import Middleware

from workers.desk import Desk


class Closing(Middleware):
    """Ends the process only when all requests that the desk has under way have ended and are recorded.

    The desks of a process end at the same time, or the last of them would have to be killed.
    """

    def __init__(self, desk: Desk[Any, Any]) -> None:
        self._desk = desk

    def before_worker_shutdown(self, broker: Broker, worker: Worker) -> None:
        self._desk.begin_to_stop()

    def after_worker_shutdown(self, broker: Broker, worker: Worker) -> None:
        self._desk.stop()

"""Ends what goes on outside the actors before the process ends."""

from __future__ import annotations

from collections.abc import Callable

from dramatiq import Broker, Worker
from dramatiq.middleware import Middleware


class Closing(Middleware):
    """Ends the process only when `stop` has returned: when all requests under way have ended and are recorded."""

    def __init__(self, stop: Callable[[], None]) -> None:
        self._stop = stop

    def before_worker_shutdown(self, broker: Broker, worker: Worker) -> None:
        self._stop()

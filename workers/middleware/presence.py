"""Says that the worker is there, under the names of its queues."""

from __future__ import annotations

from dramatiq import Broker, Worker
from dramatiq.middleware import Middleware

from app import presence


class Presence(Middleware):
    """A worker's process type is the queue it serves."""

    def after_worker_boot(self, broker: Broker, worker: Worker) -> None:
        for queue_name in worker.consumers:
            if queue_name in presence.TYPES:
                presence.announce(queue_name)

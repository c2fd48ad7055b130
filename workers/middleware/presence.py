"""Says that the worker is there, under the names of its queues."""

from __future__ import annotations

from dramatiq import Broker, Worker
from dramatiq.middleware import Middleware

from app import presence


class Presence(Middleware):
    """A worker's process type is the queue it serves; `retries` serves those that are not a type."""

    def after_worker_boot(self, broker: Broker, worker: Worker) -> None:
        for process_type in process_types(broker):
            presence.announce(process_type)


def process_types(broker: Broker) -> set[str]:
    return {name if name in presence.TYPES else "retries" for name in broker.get_declared_queues()}

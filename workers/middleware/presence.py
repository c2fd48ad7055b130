"""Announces the worker under its process types."""

from __future__ import annotations

from dramatiq import Broker, Worker
from dramatiq.middleware import Middleware

from app import presence

# A queue belongs to the process type of its name, but for these.
_TYPE_OF = {"runs": "automations", "run-requests": "automations"}


class Presence(Middleware):
    """A worker's process type follows from its queues; `retries` serves only those of no other process type."""

    def after_worker_boot(self, broker: Broker, worker: Worker) -> None:
        for process_type in process_types(broker):
            presence.announce(process_type)


def process_types(broker: Broker) -> set[str]:
    """The process types of the Procfile that a worker with this broker stands for."""
    types = {_TYPE_OF.get(queue, queue) for queue in broker.get_declared_queues()}
    return types & set(presence.TYPES) or {"retries"}

"""Turns tracing on in the worker, if the operator wants it."""

from __future__ import annotations

from dramatiq import Broker, Worker
from dramatiq.middleware import Middleware

from app.logs import tracing
from workers.middleware.registration import process_types


class Traces(Middleware):
    """Starts tracing for a service named after the process type; for several types, `bellhop-worker`."""

    def before_worker_boot(self, broker: Broker, worker: Worker) -> None:
        types = process_types(broker)
        tracing.start(types.pop() if len(types) == 1 else "worker")

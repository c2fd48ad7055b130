"""Serves `GET /metrics` for the worker, on a port of its own."""

from __future__ import annotations

from dramatiq import Broker, Worker
from dramatiq.middleware import Middleware

from app import metrics
from app.config import settings
from workers.middleware.registration import process_types


class Figures(Middleware):
    """Serves the metrics for as long as the worker lives."""

    def after_worker_boot(self, broker: Broker, worker: Worker) -> None:
        configured = settings()
        metrics.serve(configured.metrics_host, configured.metrics_port, "+".join(sorted(process_types(broker))))

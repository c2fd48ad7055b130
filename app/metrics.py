"""Prometheus metrics of each process. Labels have few values: none names a workspace or a person."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterable
from errno import EADDRINUSE
from functools import partial
from pathlib import Path

import structlog
from prometheus_client import (
    REGISTRY,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    start_http_server,
)
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

log = structlog.get_logger(__name__)

# The variable that names a directory for metrics of forked processes. `app/gunicorn.py` sets it.
SHARED = "PROMETHEUS_MULTIPROC_DIR"
# Ports to try, so that several processes on one machine do not collide.
MOST_PORTS = 100
# How long the process that serves shared metrics waits for its predecessor to release the port.
_PATIENCE_SECONDS, _PAUSE_SECONDS = 5.0, 0.05

disable_created_metrics()

PROCESSES = Gauge("bellhop_processes", "Processes that these figures are of.", ["type"], multiprocess_mode="livesum")
BUILD = Gauge("bellhop_build_info", "1 for the version that runs.", ["version"], multiprocess_mode="livemax")
DATABASE_AWAY = Counter("bellhop_database_away", "Statements that failed because PostgreSQL was away or gave up.")
REPLICA_READS = Counter(
    "bellhop_replica_reads",
    "Reads for the replica, by who answered: it, or the primary, as it was behind, away or none.",
    ["outcome"],
)
REDIS_AWAY = Counter("bellhop_redis_away", "Calls that failed because Redis, or the broker, was away or slow.")

REQUESTS = Counter("http_requests", "Requests answered.", ["method", "route", "status"])
REQUEST_SECONDS = Histogram(
    "http_request_duration_seconds",
    "Time from a request's headers to its answer, waiting by `Prefer: wait` included.",
    ["method", "route"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
)
SPANS = Counter("bellhop_spans", "Spans of traces, by whether they were sent.", ["outcome"])
BOUNDS_REACHED = Counter("bellhop_bounds_reached", "Times that a bound of `docs/limits.md` was reached.", ["bound"])
JOBS_ACCEPTED = Counter("bellhop_jobs_accepted", "Writes accepted, replays not counted.", ["kind"])
JOBS_FINISHED = Counter("bellhop_jobs_finished", "Writes applied, by how they ended.", ["kind", "status"])
JOBS_UNKNOWN = Gauge(
    "bellhop_jobs_unknown", "Jobs that wait for a worker that knows their kind.", multiprocess_mode="livemax"
)
BELLS = Counter("bellhop_bells", "Bells rung, and bells lost because Redis or the broker was away.", ["outcome"])
ATTEMPT_SECONDS = Histogram(
    "bellhop_delivery_attempt_duration_seconds",
    "Delivery attempts: how long each took, by the class of the receiver's status, or none.",
    ["answer"],
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60),
)
RUNS_FINISHED = Counter("bellhop_runs_finished", "Runs of automations finished, by how they ended.", ["status"])
RUN_STEPS = Counter("bellhop_run_steps", "Steps taken by runs.", ["kind", "status"])
RUN_BATCH_SECONDS = Histogram(
    "bellhop_run_batch_duration_seconds",
    "Batches of runs: how long the steps of each took, commit included.",
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
RUN_REQUESTS = Counter("bellhop_run_requests", "Attempts at requests of runs, by outcome.", ["outcome"])
MESSAGES = Counter("bellhop_messages", "Attempts to send messages, by outcome.", ["outcome"])
ARRIVALS = Counter("bellhop_arrivals", "Arrivals over channels, by outcome.", ["outcome"])
FETCHES = Counter("bellhop_media_fetches", "Attempts to fetch files, by outcome.", ["outcome"])
OUR_FAULTS = Counter("bellhop_our_faults", "Requests to other servers that failed for a fault of ours.", ["cause"])
ENDPOINTS_STOPPED = Counter("bellhop_endpoints_stopped", "Endpoints stopped, and why.", ["reason"])
LISTENERS = Gauge(
    "bellhop_listeners", "Streams of live updates that are open.", ["stream"], multiprocess_mode="livesum"
)
LIVE_SENT = Counter("bellhop_live_frames", "Batches of live updates sent, one for each listener.")
LIVE_DROPPED = Counter("bellhop_listeners_dropped", "Streams ended by us, and why.", ["reason"])
LIVE_SECONDS = Histogram(
    "bellhop_live_lag_seconds",
    "Time from the beginning of a transaction to when its updates are sent.",
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30),
)
MEDIA_FREE = Gauge(
    "bellhop_media_free_bytes",
    "Bytes that are free under MEDIA_DIR, and in the temporary directory.",
    ["directory"],  # without a label, processes that never measure it would report 0
    multiprocess_mode="livemin",
)
DISK_REFUSALS = Counter(
    "bellhop_disk_refusals", "Statements and files that PostgreSQL's disk or MEDIA_DIR did not take.", ["disk"]
)
for _disk in ("database", "media"):  # creates the series at 0, so that the first refusal counts as an increase
    DISK_REFUSALS.labels(_disk)
EMAILS = Counter("bellhop_emails", "Attempts to send e-mail to members, by outcome.", ["outcome"])

LEADS = Gauge("bellhop_scheduler_leads", "1 in the scheduler that leads.", multiprocess_mode="livemax")
OVERDUE_SECONDS = Gauge("bellhop_overdue_seconds", "For how long the oldest mail of a kind has been due.", ["mail"])
WAITING = Gauge("bellhop_waiting_mail", "Mail that waits for a worker, by kind.", ["mail"])
OLDEST_TRANSACTION_SECONDS = Gauge(
    "bellhop_oldest_transaction_seconds",
    "For how long the oldest transaction, snapshot or slot of PostgreSQL has kept dead rows from being removed.",
)
PASS_SECONDS = Histogram(
    "bellhop_scheduler_pass_duration_seconds",
    "Passes of the scheduler: how long each took.",
    ["name"],
    buckets=(0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 30),
)
PASSES_FAILED = Counter("bellhop_scheduler_passes_failed", "Passes of the scheduler that failed.", ["name"])

# Prometheus sees no increase in a counter whose first value is above 0, so counters of rare faults begin at 0.
ARRIVALS.labels("failed")
for _reason in ("gone", "failures"):
    ENDPOINTS_STOPPED.labels(_reason)


def serve(host: str, port: int, process_type: str, patience_seconds: float = 0) -> None:
    """Serves `GET /metrics` on `port`, or on the next free one; 0 disables it.

    Waits up to `patience_seconds` for `port` before trying the next. Logs a warning, and does not raise, if no port can
    be used.
    """
    PROCESSES.labels(process_type).set(1)
    if port == 0:
        return
    ends = time.monotonic() + patience_seconds
    candidate, last = port, port + MOST_PORTS - 1
    while candidate <= last:
        try:
            start_http_server(candidate, host, registry=_registry())
        except OSError as error:
            failure = error
            if error.errno != EADDRINUSE:
                break
            if candidate == port and time.monotonic() < ends:
                time.sleep(_PAUSE_SECONDS)
            else:
                candidate += 1
        else:
            log.info("metrics.served", host=host, port=candidate)
            return
    log.warning("metrics.not_served", host=host, port=candidate, error=str(failure))


def serve_shared(host: str, port: int, process_type: str) -> None:
    """Waits until no other process serves the shared metrics, and then serves them.

    They are the metrics of all processes that share the files.
    """
    # The lock ends with the process that serves; another process then gets the lock.
    lock = os.open(Path(os.environ[SHARED]) / "served", os.O_CREAT | os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    # A killed process may lose the lock a moment before it loses the port.
    serve(host, port, process_type, _PATIENCE_SECONDS)


def _registry() -> CollectorRegistry:
    """Returns the metrics of this process, or the sum of all processes that share its files."""
    if SHARED not in os.environ:
        return REGISTRY
    registry = CollectorRegistry()
    MultiProcessCollector(registry)
    registry.register(_Together())
    return registry


class _Together(Collector):
    """CPU time, memory and open files, summed over the live processes that share their metrics."""

    ADDABLE = (
        "process_cpu_seconds",
        "process_resident_memory_bytes",
        "process_virtual_memory_bytes",
        "process_open_fds",
    )

    def collect(self) -> Iterable[Metric]:
        sums: dict[str, Metric] = {}
        for living in Path(os.environ[SHARED]).glob("gauge_livesum_*.db"):
            pid = living.stem.rpartition("_")[2]
            for metric in ProcessCollector(pid=partial(str, pid), registry=None).collect():
                if metric.name in self.ADDABLE:
                    [sample], earlier = metric.samples, sums.get(metric.name)
                    value = sample.value + (earlier.samples[0].value if earlier else 0)
                    metric.samples = [sample._replace(value=value)]
                    sums[metric.name] = metric
        return sums.values()

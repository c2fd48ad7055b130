"""Settings of gunicorn for `web`: `python -m app.serving --config python:app.gunicorn …`."""

from __future__ import annotations

import fcntl
import gc
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from app import logs
from app.config import settings_or_exit
from app.serving.buffering import BufferingWorker
from app.sql import schema

configured = settings_or_exit()
host = configured.listen_host
bind = f"[{host}]:{configured.port}" if ":" in host else f"{host}:{configured.port}"


def _directory() -> str:
    """Creates and locks a directory for metrics. Removes the directories of processes that died."""
    starting = os.open(tempfile.gettempdir(), os.O_RDONLY)
    fcntl.flock(starting, fcntl.LOCK_EX)  # so that no other process finds our directory before it is locked
    for left in Path(tempfile.gettempdir()).glob("bellhop-figures-*"):
        with suppress(OSError):  # another process uses the directory
            _lock(left)
            shutil.rmtree(left)
    made = tempfile.mkdtemp(prefix="bellhop-figures-")
    _lock(made)
    os.close(starting)
    return made


def _lock(directory: str | Path) -> None:
    fcntl.flock(os.open(directory, os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)


# Worker processes keep their metrics in files here, so that any of them can report the sum. The variable must be set
# before prometheus_client is imported, so the functions below import it only when they are called.
figures = os.environ["PROMETHEUS_MULTIPROC_DIR"] = _directory()

# Set here because gunicorn, which reads WEB_CONCURRENCY itself before this file, would start no worker for 0.
workers = configured.web_concurrency
worker_class = BufferingWorker
threads = 16
# Longer than load balancers keep an idle connection, so that they never send on one that is being closed.
keepalive = 75
graceful_timeout = 35  # a little more than the longest `Prefer: wait`
limit_request_line = 8190  # RFC 9112, section 3: at least 8,000; a filter of 255 characters may take 3,060
# Otherwise a local proxy could pass on a SCRIPT_NAME header, which would change the meaning of paths.
forwarder_headers = ""
accesslog = None  # off, because the application writes its own log
errorlog = "-"
loglevel = "warning"
control_socket_disable = True  # the socket would be under HOME, which is not writable in a container


def on_starting(server: Any) -> None:
    """Waits for the schema. gunicorn calls this before it listens."""
    logs.configure("web")
    schema.wait()


def post_worker_init(worker: Any) -> None:
    """Prepares a new worker process before its first request. gunicorn calls this in that process."""
    from app import database, metrics, process_registry, web
    from app.database import replica
    from app.domain.insight import refused_requests
    from app.lib import vitals

    web.compile_templates(worker.wsgi.extensions["pages"])
    database.watch()
    replica.watch()
    process_registry.announce("web")
    metrics.PROCESSES.labels("web").set(1)
    vitals.start(refused_requests.keep_writing, "refusals")
    vitals.start(metrics.serve_shared, "metrics", configured.metrics_host, configured.metrics_port, "web")
    # Objects from startup stay alive. Freezing them keeps the collector from scanning them again and again.
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000)


def worker_exit(server: Any, worker: Any) -> None:
    """Writes the refused requests still in memory. gunicorn calls this in the process that ends."""
    from app.database import DatabaseAway
    from app.domain.insight import refused_requests

    with suppress(*DatabaseAway):
        refused_requests.write_out()


def child_exit(server: Any, worker: Any) -> None:
    """Drops the gauges of a worker process that ended. gunicorn calls this in the parent."""
    from prometheus_client import multiprocess

    multiprocess.mark_process_dead(worker.pid)


def on_exit(server: Any) -> None:
    """Removes the metrics files."""
    shutil.rmtree(figures, ignore_errors=True)

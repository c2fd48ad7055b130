"""How gunicorn serves the API: `gunicorn --config python:app.gunicorn "app:create_app()"`."""

from __future__ import annotations

import fcntl
import gc
import os
import shutil
import socket
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from app.config import settings
from app.errors import SettingsError
from app.unreadable import RefusingWorker

try:
    bind = f"0.0.0.0:{settings().port}"
except SettingsError as error:
    sys.exit(f"bellhop: {error.detail}")


def _directory() -> str:
    """A new directory, locked for as long as this process or one of its children lives. Removes those nobody has."""
    starting = os.open(tempfile.gettempdir(), os.O_RDONLY)
    fcntl.flock(starting, fcntl.LOCK_EX)  # no other that starts now finds ours before it is locked
    for left in Path(tempfile.gettempdir()).glob("bellhop-figures-*"):
        with suppress(OSError):  # somebody has it
            _lock(left)
            shutil.rmtree(left)
    made = tempfile.mkdtemp(prefix="bellhop-figures-")
    _lock(made)
    os.close(starting)
    return made


def _lock(directory: str | Path) -> None:
    fcntl.flock(os.open(directory, os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)


# Its processes keep what they count in files here, so that whichever is asked can tell of all. Has to be set before
# anything imports prometheus_client, so the functions below import what does when they are called.
figures = os.environ["PROMETHEUS_MULTIPROC_DIR"] = _directory()

# Longer than any request takes: what is under way for longer waits for its client.
PATIENCE_SECONDS = 70


class PatientWorker(RefusingWorker):
    """gunicorn's worker with threads. It waits for no client for ever, and for none where all others wait with it."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._begun: dict[Any, float] = {}  # what threads have in hand, oldest first

    def handle(self, conn: Any) -> Any:
        self._begun[conn] = time.monotonic()
        try:
            is_kept = super().handle(conn)
            if not is_kept:
                # Takes until the client ends it too, or two seconds: not to be done where gunicorn would, for all wait.
                conn.close(graceful=True)
                conn.close = lambda graceful=False: None
            return is_kept
        finally:
            del self._begun[conn]

    def murder_pending(self) -> None:
        """Called every second, or more often."""
        super().murder_pending()
        for conn, begun in list(self._begun.items()):
            if time.monotonic() - begun < PATIENCE_SECONDS:
                break
            with suppress(OSError):
                conn.sock.shutdown(socket.SHUT_RDWR)  # wakes the thread


# gunicorn reads WEB_CONCURRENCY too, before anything of ours, and would start none for 0.
workers = settings().web_concurrency
worker_class = PatientWorker
threads = 16
# Longer than load balancers keep an idle connection, so that they never send on one that is being closed.
keepalive = 75
graceful_timeout = 35  # the longest `Prefer: wait`, and a little
limit_request_line = 8190  # RFC 9112, section 3: at least 8,000; a filter of 255 characters may take 3,060
# Otherwise a header named SCRIPT_NAME that a proxy on this machine lets pass changes what a path means.
forwarder_headers = ""
accesslog = None  # the application has its own
errorlog = "-"
loglevel = "warning"


def post_worker_init(worker: Any) -> None:
    from app import metrics, presence

    presence.announce("web")
    metrics.PROCESSES.labels("web").set(1)
    # What is there now stays, and need not be looked through again and again.
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000)


def child_exit(server: Any, worker: Any) -> None:
    from prometheus_client import multiprocess

    multiprocess.mark_process_dead(worker.pid)


def on_exit(server: Any) -> None:
    shutil.rmtree(figures, ignore_errors=True)

"""`python -m app.live`: the `realtime` process."""

from __future__ import annotations

import asyncio
import gc
import signal
import sys
import threading

import structlog
import uvloop

from app import database, logs, metrics, process_registry
from app.config import settings, settings_or_exit
from app.lib import vitals
from app.lib.files import raise_open_limit
from app.live.server import Server
from app.sql import schema

log = structlog.get_logger(__name__)

BACKLOG = 4_096  # connections waiting to be accepted: when a process dies, all its listeners reconnect within seconds


def main() -> None:
    """Serves live updates until SIGTERM or SIGINT. First waits until no migration is pending.

    If a setting is wrong or the port cannot be used, says so and exits.
    """
    configured = settings_or_exit()
    logs.configure("realtime")
    schema.wait()
    database.connect()
    process_registry.announce("realtime")
    metrics.serve(configured.metrics_host, configured.metrics_port, "realtime")
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    try:
        run(stopping)
    except OSError as error:
        sys.exit(f"bellhop: port {configured.realtime_port} cannot be used: {error.strerror}")


def run(stopping: threading.Event) -> None:
    """Serves live updates until `stopping` is set. Raises OSError if the port cannot be used."""
    database.watch()
    # Raises the limit as far as it goes: systems often allow only 1,024 files by default.
    descriptors = raise_open_limit(sys.maxsize)
    uvloop.run(_serve(settings().realtime_port, descriptors, stopping))


async def _serve(port: int, descriptors: int, stopping: threading.Event) -> None:
    loop = asyncio.get_running_loop()
    vitals.watch(loop, "streams")
    server = Server(loop, descriptors)
    host = settings().listen_host
    listening = await loop.create_server(server.connection, host, port, backlog=BACKLOG, reuse_port=True)
    server.hub.start()
    vitals.start(server.hub.hear_signs, "signs")
    # Objects from startup stay alive. Freezing them keeps the collector from scanning them again and again.
    gc.collect()
    gc.freeze()
    log.info("realtime.started", port=port)
    await asyncio.to_thread(stopping.wait)
    listening.close()
    server.hub.stop()
    log.info("realtime.stopped")


if __name__ == "__main__":
    main()

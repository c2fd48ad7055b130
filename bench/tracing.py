"""`python -m bench.tracing`: the CPU time that traces add to a write with its webhook.

See docs/monitoring.md. It needs the packages of requirements-tracing.txt: `PYTHONPATH=.tracing/packages
.venv/bin/python -m bench.tracing`.
"""

import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from bench import sites
from bench.arrivals import Arrivals, receiving
from bench.costs import each, measured
from bench.sites import Site
from bench.sustained import offer

RATE, WARM_SECONDS, SECONDS, ROUNDS = 60, 4, 20, 3
# Processes to leave out: realtime makes no spans, and the others have nothing to do.
COUNTS = {"realtime": 0, "retries": 0, "messages": 0, "automations": 0, "slow-deliveries": 0}


def main() -> None:
    """Prints the CPU milliseconds of a write for each setting. Each round has new stacks."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that no process stays
    with _collector() as endpoint:
        on = {"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint}
        sampled = on | {"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.05"}
        for number in range(1, ROUNDS + 1):
            for name, settings in {"off": {}, "on": on, "on, 5 % of the traces": sampled}.items():
                load = os.getloadavg()[0]
                print(f"round {number}, {name}: {_cost(settings)}; load {load:.1f}", flush=True)


def _cost(settings: Mapping[str, str]) -> str:
    arrivals = Arrivals()
    with sites.site(COUNTS, sites.SETTINGS | dict(settings)) as site, receiving(site, arrivals):
        sites.start(site)
        offer(site, arrivals, WARM_SECONDS, rate=RATE)
        return _measured(site, arrivals)


def _measured(site: Site, arrivals: Arrivals) -> str:
    with measured(site) as spent:
        writes = len(offer(site, arrivals, SECONDS, rate=RATE).at)
    ours = {name: spent.get(name, 0.0) for name in ("web", "writes", "deliveries", "scheduler")}
    return each(ours, writes)


@contextmanager
def _collector() -> Iterator[str]:
    """Yields the address of a server that accepts everything and reads nothing."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()


if __name__ == "__main__":
    main()

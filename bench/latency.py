"""Latency: how soon the webhook of a single write arrives on an idle system.

Also the cost of idling.
"""

import random
import socket
import time

from bench import sites
from bench.arrivals import Arrivals, receiving
from bench.costs import measured
from bench.errors import BenchError
from bench.figures import Row, at_most, milliseconds, percentile
from bench.sites import Site, Tell
from bench.wire import Requests, is_accepted, is_whole

WRITES = 200
WARM_WRITES = 10
PAUSE_SECONDS = (0.1, 0.2)
IDLE_SECONDS = 20


def run(site: Site, tell: Tell) -> list[Row]:
    arrivals = Arrivals()
    with receiving(site, arrivals):
        sites.start(site)
        times = _times(site, arrivals)
        tell("writes done; now idling")
        idle = _idle_costs(site)
    from_accepted = [(arrived - accepted) * 1000 for _, accepted, arrived in times]
    from_sent = [arrived - sent for sent, _, arrived in times]
    return [
        at_most("latency", "accepted to received, median", percentile(from_accepted, 0.5), 60, " ms"),
        at_most("latency", "accepted to received, p95", percentile(from_accepted, 0.95), 150, " ms"),
        Row("latency", "accepted to received, max", f"{max(from_accepted):.1f} ms"),
        Row("latency", "sent to accepted, median", milliseconds(percentile([a - s for s, a, _ in times], 0.5))),
        Row("latency", "sent to received, median", milliseconds(percentile(from_sent, 0.5))),
        Row("latency", "sent to received, p95", milliseconds(percentile(from_sent, 0.95))),
        at_most("idle", "of one core, everything", sum(idle.values()), 10, " %"),
        *(Row("idle", f"of one core, {kind}", f"{share:.2f} %") for kind, share in idle.items()),
    ]


def _times(site: Site, arrivals: Arrivals) -> list[tuple[float, float, float]]:
    """Returns when each write was sent, accepted and received, without the warm-up."""
    requests, first = Requests(site.stack.port, site.path, site.token), site.new_contacts()
    times = []
    with socket.create_connection(("127.0.0.1", site.stack.port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for number in range(first, first + WARM_WRITES + WRITES):
            sent = time.time()
            connection.sendall(requests.make(number))
            accepted = _read_acceptance(connection)
            times.append((sent, accepted, arrivals.wait_for(number)))
            time.sleep(random.uniform(*PAUSE_SECONDS))
    return times[WARM_WRITES:]


def _read_acceptance(connection: socket.socket) -> float:
    response = connection.recv(65536)
    while not is_whole(response):
        response += connection.recv(65536)
    at = time.time()
    if not is_accepted(response):
        raise BenchError(f"Not accepted: {response.decode(errors='replace')}")
    return at


def _idle_costs(site: Site) -> dict[str, float]:
    """Returns the percentage of one core that each process type uses while idle."""
    time.sleep(3)
    with measured(site) as spent:
        time.sleep(IDLE_SECONDS)
    return {name: 100 * seconds / IDLE_SECONDS for name, seconds in spent.items()}

"""The highest rate of writes with their webhooks at which no backlog grows."""

import time
from dataclasses import dataclass

from bench import sites
from bench.arrivals import Arrivals, receiving
from bench.costs import each, measured, written
from bench.errors import BenchError
from bench.figures import Row, at_most, breakdown, growth, milliseconds, percentile
from bench.offers import Accepted, Offer
from bench.sites import Site, Tell
from bench.statements import counted

WINDOW = 500
RAMP_SECONDS = 3
STEADY_SECONDS = 12
COUNTED_SECONDS = 6
DRAIN_SECONDS = 60
MOST_LATE_SECONDS = 1.0
STEPS = (0.95, 0.8, 0.65, 0.5, 0.35, 0.2)  # the rates to try, as shares of the rate with a window
MOST_STATEMENTS = 6


@dataclass(frozen=True)
class Steady:
    """Rates and latencies after the ramp."""

    accepted_per_second: float
    received_per_second: float
    backlog: int
    latencies: list[float]

    @property
    def keeps_up(self) -> bool:
        """Whether the backlog neither grew nor shrank, and p95 stayed below the limit."""
        steady = 0.97 <= self.received_per_second / self.accepted_per_second <= 1.03
        return steady and percentile(self.latencies, 0.95) <= MOST_LATE_SECONDS

    def __str__(self) -> str:
        p50, p95 = (milliseconds(percentile(self.latencies, share)) for share in (0.5, 0.95))
        rates = f"accepted {self.accepted_per_second:.0f}/s, received {self.received_per_second:.0f}/s"
        return f"{rates}, backlog {self.backlog}, p50 {p50}, p95 {p95}"


def run(site: Site, tell: Tell) -> list[Row]:
    """Finds the rate with a window of writes in flight, then the rate that the service keeps up with."""
    arrivals = Arrivals()
    with receiving(site, arrivals):
        sites.start(site)
        full = _steady(site, arrivals, window=WINDOW)
        tell(f"with {WINDOW} under way: {full}")
        rate, steady = _find_rate(site, arrivals, full.received_per_second, tell)
        statements = _statements(site, arrivals, rate)
        before, (cost, writes) = written(site), _cost(site, arrivals, rate)
        bytes_written = growth("sustained", "write with its webhook", before, written(site), writes)
    return [
        Row("sustained", f"received, {WINDOW} writes under way", f"{full.received_per_second:.0f}/s"),
        Row("sustained", "offered", f"{rate:.0f}/s", "keeps up", steady.keeps_up),
        Row("sustained", "accepted", f"{steady.accepted_per_second:.0f}/s"),
        Row("sustained", "received", f"{steady.received_per_second:.0f}/s"),
        Row("sustained", "backlog at the end", f"{steady.backlog}"),
        Row("sustained", "accepted to received, median", milliseconds(percentile(steady.latencies, 0.5))),
        Row("sustained", "accepted to received, p95", milliseconds(percentile(steady.latencies, 0.95))),
        Row("sustained", "CPU of a write, accepted to recorded", cost),
        at_most("sustained", "SQL statements, accepted to recorded", statements, MOST_STATEMENTS),
        *bytes_written,
    ]


def _find_rate(site: Site, arrivals: Arrivals, most: float, tell: Tell) -> tuple[float, Steady]:
    """Returns the first step that the service keeps up with; the lowest one if none."""
    for step in STEPS:
        rate = most * step
        steady = _steady(site, arrivals, rate=rate)
        tell(f"offered {rate:.0f}/s: {steady}")
        if steady.keeps_up:
            break
    return rate, steady


def _steady(site: Site, arrivals: Arrivals, **how: float) -> Steady:
    accepted = offer(site, arrivals, RAMP_SECONDS + STEADY_SECONDS, **how)
    begin, end = accepted.began + RAMP_SECONDS, accepted.ended
    arrived = {number: arrivals.at[number] for number in accepted.at}
    return Steady(
        accepted_per_second=sum(begin <= at < end for at in accepted.at.values()) / STEADY_SECONDS,
        received_per_second=sum(begin <= at < end for at in arrived.values()) / STEADY_SECONDS,
        backlog=sum(at < end for at in accepted.at.values()) - sum(at < end for at in arrived.values()),
        latencies=[arrived[number] - at for number, at in accepted.at.items() if begin <= at < end],
    )


def _statements(site: Site, arrivals: Arrivals, rate: float) -> float:
    with counted(site) as statements:
        writes = len(offer(site, arrivals, COUNTED_SECONDS, rate=rate).at)
    statements.check(writes)
    print(breakdown("From accepted to recorded", statements, writes), end="\n\n", flush=True)
    return statements.total / writes


def _cost(site: Site, arrivals: Arrivals, rate: float) -> tuple[str, int]:
    with measured(site) as spent:
        writes = len(offer(site, arrivals, COUNTED_SECONDS, rate=rate).at)
    return each(spent, writes), writes


def offer(site: Site, arrivals: Arrivals, seconds: float, **how: float) -> Accepted:
    """Offers load. Returns once all accepted writes are received and recorded.

    Raises BenchError if that takes too long.
    """
    run = Offer(site.plan(seconds, **how))
    arrivals.on_arrival = run.note_received
    accepted = run.accepted()
    ends = time.monotonic() + DRAIN_SECONDS
    while not accepted.at.keys() <= arrivals.at.keys() or _under_way(site):
        if time.monotonic() > ends:
            raise BenchError(f"Not everything was received {DRAIN_SECONDS} s after the last was accepted.")
        time.sleep(0.2)
    return accepted


def _under_way(site: Site) -> bool:
    return bool(site.query("SELECT 1 FROM deliveries WHERE due_at IS NOT NULL LIMIT 1"))

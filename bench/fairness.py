"""Fairness: how much slow and overloaded endpoints delay others in the same workspaces.

Of 100 endpoints, 50 hang: they accept connections, read requests and never respond. Each of the 100 gets 20 deliveries
a second for a minute, evenly spaced and recorded as a worker does, not through the API. For every delivery to the 50
that respond, the run measures the time from the event's `created_at` to the first arrival, and compares it with a run
without the endpoints that hang. Targets: p99 at most 1 s, and at most 2 times the p99 of the run without them.

It runs twice: as in production, where endpoints stop after 50 failures in a row, and without stops, which is harder.
Another run has one more endpoint, which responds at once but has a backlog of 100,000 deliveries, all due when the run
begins. That endpoint has a workspace and a receiver of its own, because queueing at one receiver would not be our
delay.

First, trials find the highest rate at which the machine can serve the 50 that respond. If that is below 20 a second
each, all runs use the lower rate, and the rows say so.

Every run has a service of its own, whose processes are warm but do not know the endpoints yet. Its PostgreSQL has WAL
segments to reuse, like a server that has run for a while. A new server creates a segment about every second under this
load, which blocks all commits for 50 ms.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from bench import sites
from bench.errors import BenchError
from bench.figures import Row, at_most, milliseconds, percentile
from bench.nginx import Nginx, nginx
from bench.programs import Program
from bench.sites import Site, Tell
from bench.stamps import Stamps, stamping

# Worker processes, each with the command of the Procfile.
COUNTS = {"deliveries": 2}
WORKSPACES = 5
MOST_SECONDS, MOST_TIMES = 1.0, 2.0
NEVER_STOP = {"STOP_AFTER_FAILURES": "1000000", "PROBE_PAUSE_SECONDS": "0"}
WARM_ENDPOINTS, WARM_RATE, WARM_SECONDS = 20, 5, 4
LEAD_SECONDS = 1.0  # time for the pacing program to get its order
DRAIN_SECONDS = 20
READY_SECONDS = 40  # seconds to start and warm processes and to make WAL segments before a backlog is due
WAL_SEGMENTS = 64  # segments of 16 MB, as many as min_wal_size in bench/sites.py keeps
MOST_LATE_SECONDS = 0.5  # how late the load itself may be; if later, the machine cannot generate the rate


@dataclass(frozen=True)
class Size:
    """The size of a run. `seconds`: its length; `trial_seconds`: the length of runs to find the rate."""

    endpoints: int = 50  # endpoints that respond, and as many that hang
    seconds: float = 60
    trial_seconds: float = 10
    backlog: int = 100_000
    rates: tuple[int, ...] = (20, 16, 12, 8, 5, 3)  # deliveries a second for each endpoint: the rates to try


@dataclass(frozen=True)
class Result:
    """The seconds of one run's deliveries, how many are missing, and how late the load itself was."""

    times: list[float]
    missing: int
    late: float
    hung: int

    @property
    def p99(self) -> float:
        return percentile(self.times, 0.99)

    @property
    def keeps_up(self) -> bool:
        return not self.missing and self.p99 <= MOST_SECONDS and self.late <= MOST_LATE_SECONDS

    def __str__(self) -> str:
        p50, p99, worst = (milliseconds(percentile(self.times, share)) for share in (0.5, 0.99, 1.0))
        missing = f", {self.missing} did not arrive in {DRAIN_SECONDS} s" if self.missing else ""
        late = f", made up to {milliseconds(self.late)} late" if self.late > MOST_LATE_SECONDS else ""
        return f"p50 {p50}, p99 {p99}, worst {worst}{missing}{late}"


FULL = Size()
QUICK = Size(endpoints=10, seconds=15, trial_seconds=5, backlog=5_000, rates=(5,))


def run(_site: Site, tell: Tell, size: Size = FULL) -> list[Row]:
    rate = _rate(size, tell)
    results: dict[str, Result] = {}

    def measure(name: str, hanging: bool = False, backlog: int = 0, settings: Mapping[str, str] | None = None) -> None:
        with _service(settings) as service:
            results[name] = service.measure(replace(size, backlog=backlog), rate, hanging)
        tell(f"{name}: {results[name]}, {results[name].hung} requests hung")

    measure("alone")
    measure(f"beside {size.endpoints} that hang", hanging=True)
    measure(f"beside {size.endpoints} that hang and are never stopped", hanging=True, settings=NEVER_STOP)
    measure(f"beside a backlog of {size.backlog:,}", backlog=size.backlog)
    lowered = "" if rate == size.rates[0] else f" ({size.rates[0]} were too many)"
    made = f"{size.endpoints} endpoints, {rate}/s each{lowered}"
    rows = [Row("fairness", made, f"{size.seconds:g} s")]
    for name, result in results.items():
        rows.append(Row("fairness", f"created to received, {name}", str(result)))
        if name != "alone":
            seconds, times = result.p99, result.p99 / results["alone"].p99
            rows.append(at_most("fairness", f"p99 {name}", seconds, MOST_SECONDS, " s", places=2))
            rows.append(at_most("fairness", f"p99 {name}, of that alone", times, MOST_TIMES, places=2))
    return rows


def _rate(size: Size, tell: Tell) -> int:
    """Returns the highest rate that the machine can serve while all endpoints respond.

    Returns the lowest rate if it can serve none.
    """
    for rate in size.rates:
        with _service() as service:
            trial = replace(size, seconds=size.trial_seconds, backlog=0)
            result = service.measure(trial, rate, hanging=False)
        tell(f"{trial.endpoints} endpoints that answer, {rate}/s each: {result}")
        if result.keeps_up:
            break
    return rate


class Service:
    """A fresh service, its receivers (responding, hanging, with a backlog), and its source of mail."""

    def __init__(self, site: Site, stamps: Stamps, silent: Stamps, other: Nginx, mail: Program) -> None:
        self._site, self._stamps, self._silent, self._other, self._mail = site, stamps, silent, other, mail

    def measure(self, size: Size, rate: int, hanging: bool) -> Result:
        """Creates the deliveries, and waits for those that get a response. Returns how long they took.

        Raises BenchError if the backlog was due too early.
        """
        workspaces = [
            self._mail.ask(workspace=self._addresses(size.endpoints // WORKSPACES, hanging, number))[0]
            for number in range(WORKSPACES)
        ]
        warm, _ = self._mail.ask(workspace=[f"{self._stamps.url}/warm/{n}" for n in range(WARM_ENDPOINTS)])
        released = self._seed(size.backlog) if size.backlog else None
        self._make_wal_segments()
        sites.start_types(self._site, "deliveries", "slow-deliveries", "retries", "scheduler")
        self._mail.ask(pace=[warm], rate=WARM_RATE, begin=time.time(), seconds=WARM_SECONDS)
        self._wait_until_done(warm)
        begin = time.time() + LEAD_SECONDS if released is None else released
        if begin < time.time():
            raise BenchError("The backlog was due before the processes were ready.")
        _, late = self._mail.ask(pace=workspaces, rate=rate, begin=begin, seconds=size.seconds)
        return self._result(workspaces, late)

    def _wait_until_done(self, workspace: str) -> None:
        ends = time.monotonic() + DRAIN_SECONDS
        query = f"SELECT 1 FROM deliveries WHERE workspace_id = '{workspace}' AND due_at IS NOT NULL LIMIT 1"
        while self._site.query(query):
            if time.monotonic() > ends:
                raise BenchError(f"What warms the processes was not delivered in {DRAIN_SECONDS} s.")
            time.sleep(0.1)

    def _addresses(self, number: int, hanging: bool, workspace: int) -> list[str]:
        urls = [self._stamps.url, self._silent.hanging_url] if hanging else [self._stamps.url]
        return [f"{url}/{workspace}/{each}" for each in range(number) for url in urls]

    def _seed(self, backlog: int) -> float:
        """Creates the deliveries of one endpoint. Returns the Unix time at which all are due."""
        workspace, _ = self._mail.ask(workspace=[f"{self._other.url}/backlog"])
        self._mail.ask(workspaces=[workspace], events=backlog)
        self._site.query(f"UPDATE deliveries SET due_at = now() + interval '1 hour' WHERE workspace_id = '{workspace}'")
        self._site.query("VACUUM ANALYZE events, deliveries")
        released = time.time() + READY_SECONDS + backlog / 10_000
        query = f"UPDATE deliveries SET due_at = to_timestamp({released}) WHERE workspace_id = '{workspace}'"
        self._site.query(query)
        self._site.query("VACUUM deliveries")
        return released

    def _make_wal_segments(self) -> None:
        for _ in range(WAL_SEGMENTS):
            self._site.query("SELECT pg_logical_emit_message(false, '', ''), pg_switch_wal()")
        self._site.query("CHECKPOINT")

    def _result(self, workspaces: list[str], late: float) -> Result:
        created = self._created(workspaces)
        ends = time.monotonic() + DRAIN_SECONDS
        while True:
            stamps = self._stamps.all()
            missing = sum(id not in stamps for id in created)
            if not missing or time.monotonic() > ends:
                break
            time.sleep(1)
        # A missing delivery has taken at least until now.
        times = [stamps.get(id, time.time()) - at for id, at in created.items()]
        return Result(times, missing, late, self._silent.hung()[0])

    def _created(self, workspaces: list[str]) -> dict[str, float]:
        """Returns when the events of the deliveries to responding endpoints were created."""
        names = ", ".join(f"'{workspace}'" for workspace in workspaces)
        return dict(
            self._site.query(
                f"""
                SELECT deliveries.id, extract(epoch FROM events.created_at)::float
                FROM deliveries JOIN events ON events.id = deliveries.event_id
                    JOIN endpoints ON endpoints.id = deliveries.endpoint_id
                WHERE deliveries.workspace_id IN ({names}) AND starts_with(endpoints.address, '{self._stamps.url}')
                """
            )
        )


@contextmanager
def _service(settings: Mapping[str, str] | None = None) -> Iterator[Service]:
    with (
        sites.site(COUNTS, settings) as site,
        stamping(site) as stamps,
        stamping(site) as silent,  # a separate receiver, so that its handshakes do not delay responses
        nginx(site.stack.directory / "nginx", site.stack.certificates) as other,
        Program("bench.mail", site.stack.environment) as mail,
    ):
        yield Service(site, stamps, silent, other, mail)

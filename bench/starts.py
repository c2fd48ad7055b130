"""Starts by the API: how soon the first step is done, when idle and beside a burst elsewhere.

The burst is in another workspace. A first step is done when its log entry can be read, which is after its commit.
Targets: idle, from the request, at most 40 ms at the median and 80 ms for 95 %; all of a burst of 10,000 within 30 s,
and meanwhile first steps of other workspaces within 1 s (p99).
"""

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import psycopg2

from bench import sites
from bench.errors import BenchError
from bench.figures import Row, at_most, percentile
from bench.load import Plan
from bench.offers import Offer
from bench.programs import Program
from bench.sites import Site, Tell
from tests.journeys.shops import Caller

STEPS = [{"id": "tag", "kind": "add_tag", "tag": "started"}, {"id": "rest", "kind": "wait", "seconds": 86_400}]
WARM = 10
PAUSE_SECONDS = (0.05, 0.15)
PATIENCE_SECONDS = 60
MOST_MEDIAN_MS, MOST_P95_MS = 40, 80
MOST_BURST_SECONDS, MOST_OTHERS_SECONDS = 30, 1.0


@dataclass(frozen=True)
class Size:
    """How many single starts there are, how many in the burst, and how many workspaces beside it."""

    writes: int = 200
    burst: int = 10_000
    others: int = 4


class Starter:
    """Starts runs of one workspace's automation, one at a time, each for another contact."""

    def __init__(self, site: Site, seeds: Program, contacts: int) -> None:
        self.workspace, self.automation, self.token = seeds.ask(publish=STEPS)
        self.contacts = seeds.ask(contacts=self.workspace, number=contacts)
        self._caller = Caller(site.stack.base_url, self.workspace, self.token)
        self._connection = psycopg2.connect(site.stack.postgres.url)
        self._connection.autocommit = True
        self._turn = 0

    def start(self) -> float:
        """Starts a run. Returns the seconds from the request until its first step is done.

        Raises BenchError.
        """
        contact = self.contacts[self._turn % len(self.contacts)]
        self._turn += 1
        began = time.monotonic()
        answer = self._caller.call("POST", f"automations/{self.automation}/start", {"contact_id": contact})
        if answer.status != 202:
            raise BenchError(f"Not accepted: {answer}")
        run_id = answer.data["resource"]["id"]
        with self._connection.cursor() as cursor:
            while True:
                cursor.execute("SELECT 1 FROM run_steps WHERE run_id = %s LIMIT 1", (run_id,))
                if cursor.fetchone() is not None:
                    return time.monotonic() - began
                if time.monotonic() - began > PATIENCE_SECONDS:
                    raise BenchError(f"The first step of {run_id} was not done in {PATIENCE_SECONDS} s.")
                time.sleep(0.001)

    def close(self) -> None:
        self._connection.close()


def run(site: Site, size: Size, tell: Tell) -> list[Row]:
    sites.start(site)
    with Program("bench.run_seeds", site.stack.environment) as seeds:
        single = Starter(site, seeds, size.writes + WARM)
        others = [Starter(site, seeds, 1_000) for _ in range(size.others)]
        busy = Starter(site, seeds, size.burst)
        try:
            for starter in (single, *others) * (WARM // 2):
                starter.start()
            times = [_after_a_pause(single) for _ in range(size.writes)]
            tell(f"idle, median {percentile(times, 0.5) * 1000:.1f} ms")
            last, beside = _burst(site, busy, others, size.burst)
        finally:
            for starter in (single, *others, busy):
                starter.close()
    tell(f"burst done in {last:.1f} s; beside it, p99 {percentile(beside, 0.99):.2f} s of {len(beside)}")
    return [
        at_most("runs", "start to first step, idle, median", percentile(times, 0.5) * 1000, MOST_MEDIAN_MS, " ms"),
        at_most("runs", "start to first step, idle, p95", percentile(times, 0.95) * 1000, MOST_P95_MS, " ms"),
        at_most("runs", f"last first step of {size.burst:,} starts", last, MOST_BURST_SECONDS, " s"),
        at_most(
            "runs",
            f"other workspaces' first steps meanwhile, p99 of {len(beside)}",
            percentile(beside, 0.99),
            MOST_OTHERS_SECONDS,
            " s",
            places=2,
        ),
    ]


def _after_a_pause(starter: Starter) -> float:
    time.sleep(random.uniform(*PAUSE_SECONDS))
    return starter.start()


def _burst(site: Site, busy: Starter, others: list[Starter], number: int) -> tuple[float, list[float]]:
    """Returns the seconds from the burst's first start to its last first step.

    Also returns the times of the other workspaces.
    """
    done = threading.Event()

    def go_on(starter: Starter) -> list[float]:
        times = []
        while not done.is_set():
            times.append(_after_a_pause(starter))
        return times

    path = f"/api/v1/workspaces/{busy.workspace}/automations/{busy.automation}/start"
    with ThreadPoolExecutor(len(others)) as threads:
        beside = [threads.submit(go_on, starter) for starter in others]
        began = time.time()
        try:
            # The window has room for all starts and nothing is reported as received, so the load ends with the last
            # start.
            plan = Plan(site.stack.port, path, busy.token, 0, MOST_BURST_SECONDS, window=number, starts=busy.contacts)
            offer = Offer(plan)
            last = _last_first_step(site, busy, number, began)
        finally:
            done.set()
    if (accepted := len(offer.accepted().at)) != number:
        raise BenchError(f"{accepted} of {number} starts were accepted.")
    return last - began, [seconds for future in beside for seconds in future.result()]


def _last_first_step(site: Site, busy: Starter, number: int, began: float) -> float:
    query = (
        f"SELECT count(*), extract(epoch FROM max(at))::float FROM run_steps WHERE workspace_id = '{busy.workspace}'"
        " AND number = 1"
    )
    while True:
        done, at = site.query(query)[0]
        if done == number:
            return float(at)
        if time.time() - began > 2 * PATIENCE_SECONDS:
            raise BenchError(f"{number - done} of {number} first steps were not done in {2 * PATIENCE_SECONDS} s.")
        time.sleep(0.5)

"""A million waiting runs, 1,000 of which fall due each second.

Each waits in its first step; another step follows. Measures the passes over runs (target: 100 ms), the memory of an
`automations` process compared with one without waiting runs, how long these processes take to restart, and how late the
runs that fall due within a minute go on (p99: 2 s).
"""

import time
from contextlib import suppress
from dataclasses import dataclass

import psutil

from bench import sites
from bench.errors import BenchError
from bench.figures import Row, at_most, milliseconds, percentile, spread, timed
from bench.programs import Program
from bench.sites import Site, Tell

# Worker processes, each with the command of the Procfile.
COUNTS = {"automations": 2}
STEPS = [{"id": "pause", "kind": "wait", "seconds": 7_776_000}, {"id": "tag", "kind": "add_tag", "tag": "woken"}]
AUTOMATIONS = 10  # automations of a workspace; each contact has a run in each of them
SEEDED_A_SECOND = 4_000  # at least this many; with fewer, runs would fall due before all are seeded
LEAD_SECONDS = 60
SETTLE_SECONDS = 15  # seconds before the window begins, to reach a steady state
DRAIN_SECONDS = 20
PASSES, PAUSE_SECONDS = 50, 0.5
MOST_PASS_MS, MOST_LATE_SECONDS, MOST_RESTART_SECONDS = 100, 2.0, 10
MOST_MEMORY = 1.2  # times the memory without waiting runs
DUE_TABLE = "bench_due"  # keeps when runs were due, because a run does not


@dataclass(frozen=True)
class Size:
    """How many workspaces, contacts, and seconds.

    `contacts`: in each workspace. `spread`: over how many seconds the runs fall due. `window`: how many seconds to
    measure.
    """

    workspaces: int = 100
    contacts: int = 1_000
    spread: float = 1_000
    window: float = 60

    @property
    def number(self) -> int:
        return self.workspaces * self.contacts * AUTOMATIONS


def run(size: Size, tell: Tell) -> list[Row]:
    with sites.site(COUNTS) as site, Program("bench.run_seeds", site.stack.environment) as seeds:
        before = _resident_after_work(site, seeds)
        site.stack.processes.stop()
        begin = time.time() + size.number / SEEDED_A_SECOND + LEAD_SECONDS
        seconds = timed(lambda: _seed(seeds, size, begin))
        tell(f"{size.number:,} waiting runs made in {seconds:.0f} s")
        site.query(f"CREATE UNLOGGED TABLE {DUE_TABLE} AS SELECT id, resume_at FROM runs WHERE resume_at IS NOT NULL")
        site.query("VACUUM ANALYZE")
        site.query("CHECKPOINT")
        restart = timed(lambda: sites.start_types(site, "automations", "scheduler"))
        idle = seeds.ask(passes=PASSES, pause=0.1)
        if (ahead := begin - time.time()) < 0:
            raise BenchError(f"The first were due {-ahead:.0f} s before everything was ready.")
        beside = _resident(site)
        tell(f"ready {ahead:.0f} s before the first are due, after {restart:.1f} s; passes {spread(idle)}")
        time.sleep(ahead + SETTLE_SECONDS)
        late, passes, busy = _window(site, size, seeds)
    rate, what = size.number / size.spread, f"{size.number:,} waiting runs"
    tell(f"late: p99 {percentile(late, 0.99):.2f} s of {len(late):,}; passes {spread(passes)}")
    return [
        at_most("runs", f"start of the workers beside {what}", restart, MOST_RESTART_SECONDS, " s"),
        at_most("runs", f"the longest pass beside {what}", max(idle) * 1000, MOST_PASS_MS, " ms"),
        Row("runs", "passes while nothing is due", spread(idle)),
        Row("runs", f"passes while {rate:,.0f}/s fall due", spread(passes)),
        Row("runs", "memory of a worker, without waiting runs", f"{before / 1e6:.0f} MB"),
        at_most("runs", f"memory beside {what}, of that", beside / before, MOST_MEMORY, places=2),
        at_most("runs", f"memory while {rate:,.0f}/s fall due, of that", busy / before, MOST_MEMORY, places=2),
        Row("runs", f"due to done, {rate:,.0f}/s, median", milliseconds(percentile(late, 0.5))),
        at_most("runs", f"due to done, {rate:,.0f}/s, p99", percentile(late, 0.99), MOST_LATE_SECONDS, " s", places=2),
    ]


def _seed(seeds: Program, size: Size, begin: float) -> None:
    made, contacts = [], []
    for _ in range(size.workspaces):
        workspace, automation, _ = seeds.ask(publish=STEPS)
        theirs = seeds.ask(contacts=workspace, number=size.contacts)
        more = [seeds.ask(publish=STEPS, workspace=workspace)[1] for _ in range(AUTOMATIONS - 1)]
        made += [[workspace, each] for each in (automation, *more)]
        contacts += [theirs] * AUTOMATIONS
    seeds.ask(sleepers=made, contacts=contacts, begin=begin, spread=size.spread)


def _resident_after_work(site: Site, seeds: Program) -> int:
    """Returns the memory of a worker that has executed some runs and has no others."""
    sites.start_types(site, "automations", "scheduler")
    workspace, automation, _ = seeds.ask(publish=STEPS[1:])
    contacts = seeds.ask(contacts=workspace, number=2_000)
    seeds.ask(runs=[workspace, automation], contacts=contacts, due=time.time())
    seeds.ask(ring=[workspace])
    ends = time.monotonic() + DRAIN_SECONDS
    while site.query("SELECT 1 FROM runs WHERE finished_at IS NULL LIMIT 1"):
        if time.monotonic() > ends:
            raise BenchError("The runs that warm the workers did not end.")
        time.sleep(0.1)
    return _resident(site)


def _window(site: Site, size: Size, seeds: Program) -> tuple[list[float], list[float], int]:
    """Measures the runs that fall due from now on, for `size.window` seconds.

    Returns how late they were, the passes meanwhile, and the largest worker's memory.
    """
    begin, memory = time.time(), 0
    seeds.tell(passes=round(size.window / PAUSE_SECONDS / 2), pause=PAUSE_SECONDS)
    while time.time() < begin + size.window:
        memory = max(memory, _resident(site))
        time.sleep(1)
    passes = seeds.answer()
    ends = time.monotonic() + DRAIN_SECONDS
    query = f"""
        SELECT extract(epoch FROM finished_at - due.resume_at)::float, extract(epoch FROM now() - due.resume_at)::float
        FROM {DUE_TABLE} due JOIN runs USING (id)
        WHERE due.resume_at >= to_timestamp({begin}) AND due.resume_at < to_timestamp({begin + size.window})
    """
    found = site.query(query)
    while any(late is None for late, _ in found) and time.monotonic() < ends:
        time.sleep(1)
        found = site.query(query)
    # A run that is not done is late by at least the time until now.
    return [until_now if late is None else late for late, until_now in found], passes, memory


def _resident(site: Site) -> int:
    """Returns the resident bytes of the largest `automations` process."""
    largest = 0
    for pid in site.stack.processes.pids("automations"):
        with suppress(psutil.NoSuchProcess):
            leader = psutil.Process(pid)
            for process in (leader, *leader.children(recursive=True)):
                largest = max(largest, process.memory_info().rss)
    return largest

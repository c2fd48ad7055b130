"""A million deliveries of 1,000 endpoints that wait for their retry; 1,000 a second fall due.

They fall due evenly. Each has failed once; its rows are copied in. With all processes running, this measures the memory
of the workers (target: 200 MB each) and of Redis, the time of a scheduler pass over the endpoints (100 ms), and how
late retries arrive that fall due within a minute (p99: 2 s). Then it measures again without a `retries` process, so
that only the scheduler wakes them. The receiver responds at once.
"""

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

import psutil
import redis

from bench import sites
from bench.errors import BenchError
from bench.figures import Row, at_most, milliseconds, percentile, spread, timed
from bench.programs import Program
from bench.sites import Site, Tell
from bench.stamps import Stamps, stamping

# Worker processes, each with the command of the Procfile.
COUNTS = {"deliveries": 2}
SETTINGS = {"RETRY_SCHEDULE": "1800,7200,43200"}
WORKERS = ("writes", "deliveries", "slow-deliveries", "retries")
SEEDED_A_SECOND = 8_000  # at least this many; with fewer, deliveries would fall due before all are seeded
LEAD_SECONDS = 60
SETTLE_SECONDS = 15  # seconds before a window begins, to open connections and reach a steady state
DRAIN_SECONDS = 20
PASSES, PAUSE_SECONDS = 50, 0.5
MOST_PASS_MS, MOST_LATE_SECONDS, MOST_MEGABYTES = 100, 2.0, 200
DUE_TABLE = "bench_due"  # keeps when deliveries were due, because their rows do not


@dataclass(frozen=True)
class Size:
    """How many deliveries wait, for how many endpoints, and for how long.

    `spread`: over how many seconds they fall due. `window`: how many seconds to measure.
    """

    number: int = 1_000_000
    endpoints: int = 1_000
    spread: float = 1_000
    window: float = 60

    @property
    def rate(self) -> float:
        return self.number / self.spread


@dataclass(frozen=True)
class Window:
    """The deliveries that fell due in a window: how late they were, and the passes meanwhile."""

    late: list[float]
    missing: int
    passes: list[float]

    @property
    def p99(self) -> float:
        return percentile(self.late, 0.99)

    def __str__(self) -> str:
        p50, p99, worst = (milliseconds(percentile(self.late, share)) for share in (0.5, 0.99, 1.0))
        missing = f", {self.missing} did not arrive in {DRAIN_SECONDS} s" if self.missing else ""
        return f"p50 {p50}, p99 {p99}, worst {worst}{missing}, of {len(self.late):,}"


FULL, QUICK = Size(), Size(number=20_000, endpoints=200, spread=100, window=15)


def run(site: Site, tell: Tell, size: Size = FULL) -> list[Row]:
    with stamping(site) as stamps, Program("bench.later", site.stack.environment) as later:
        begin = time.time() + size.number / SEEDED_A_SECOND + LEAD_SECONDS
        order = {"number": size.number, "endpoints": size.endpoints, "begin": begin, "spread": size.spread}
        seconds = timed(lambda: later.ask(seed=stamps.url, **order))
        tell(f"{size.number:,} deliveries made in {seconds:.0f} s")
        database = int(site.query("SELECT pg_database_size(current_database())")[0][0])
        site.query(f"CREATE UNLOGGED TABLE {DUE_TABLE} AS SELECT id, next_attempt_at FROM deliveries")
        site.query("VACUUM ANALYZE")
        site.query("CHECKPOINT")  # several checkpoints would have happened while so many failed
        rows = [Row("waiting", "the database", f"{database / 1e6:,.0f} MB")]
        sites.start(site)
        used = int(redis.Redis.from_url(site.stack.redis.url).info("memory")["used_memory"])
        rows.append(Row("waiting", f"Redis, while {size.number:,} wait", f"{used / 1e6:,.0f} MB"))
        idle = later.ask(passes=PASSES, pause=0.1)
        rows += _passes("while nothing is due", idle)
        if (ahead := begin - time.time()) < 0:
            raise BenchError(f"The first were due {-ahead:.0f} s before everything was ready.")
        tell(f"ready {ahead:.0f} s before the first are due; passes {spread(idle)}")
        time.sleep(ahead + SETTLE_SECONDS)
        memory: dict[str, int] = {}
        window = _window(site, size, stamps, later, memory)
        tell(f"late: {window}; passes {spread(window.passes)}")
        site.stack.processes.stop("retries.1")
        log, already = site.stack.processes.log("scheduler"), site.stack.processes.log("scheduler").stat().st_size
        time.sleep(SETTLE_SECONDS)
        alone = _window(site, size, stamps, later, memory)
        tell(f"late by the scheduler alone: {alone}; passes {spread(alone.passes)}")
        logged = _logged_passes(log.read_bytes()[already:])
    rows += _passes("while they fall due", window.passes)
    rows.append(Row("waiting", "passes of the scheduler alone, by its log", spread(logged)))
    rows.append(Row("waiting", f"due to received, {size.rate:.0f}/s", str(window)))
    rows.append(at_most("waiting", "due to received, p99", window.p99, MOST_LATE_SECONDS, " s", places=2))
    rows.append(Row("waiting", f"due to received, {size.rate:.0f}/s, by the scheduler alone", str(alone)))
    return rows + _memory(memory)


def _window(site: Site, size: Size, stamps: Stamps, later: Program, memory: dict[str, int]) -> Window:
    """Measures the deliveries that fall due from now on.

    Meanwhile measures scheduler passes, and memory, which goes into `memory`.
    """
    begin = time.time()
    later.tell(passes=round(size.window / PAUSE_SECONDS / 2), pause=PAUSE_SECONDS)
    while time.time() < begin + size.window:
        for name, size_now in _resident(site).items():
            memory[name] = max(memory.get(name, 0), size_now)
        time.sleep(1)
    passes = later.answer()
    due = dict(
        site.query(
            f"""
            SELECT id, extract(epoch FROM next_attempt_at)::float FROM {DUE_TABLE}
            WHERE next_attempt_at >= to_timestamp({begin}) AND next_attempt_at < to_timestamp({begin + size.window})
            """
        )
    )
    ends = time.monotonic() + DRAIN_SECONDS
    while True:
        arrived = stamps.all()
        missing = sum(id not in arrived for id in due)
        if not missing or time.monotonic() > ends:
            break
        time.sleep(1)
    # A missing delivery is late by at least the time until now.
    return Window([arrived.get(id, time.time()) - at for id, at in due.items()], missing, passes)


def _resident(site: Site) -> dict[str, int]:
    """Returns the resident bytes of the largest process of each type."""
    found: dict[str, int] = {}
    for kind in (*WORKERS, "scheduler", "web"):
        for pid in site.stack.processes.pids(kind):
            with suppress(psutil.NoSuchProcess):
                leader = psutil.Process(pid)
                for process in (leader, *leader.children(recursive=True)):
                    found[kind] = max(found.get(kind, 0), process.memory_info().rss)
    return found


def _memory(found: Mapping[str, int]) -> list[Row]:
    return [
        at_most("waiting", f"resident memory, {kind}", size / 1e6, MOST_MEGABYTES, " MB")
        if kind in WORKERS
        else Row("waiting", f"resident memory, {kind}", f"{size / 1e6:.1f} MB")
        for kind, size in found.items()
    ]


def _passes(when: str, seconds: list[float]) -> list[Row]:
    return [
        Row("waiting", f"passes of the scheduler {when}", spread(seconds)),
        at_most("waiting", f"the longest pass {when}", max(seconds) * 1000, MOST_PASS_MS, " ms"),
    ]


def _logged_passes(log: bytes) -> list[float]:
    """Returns the seconds of each pass that found something."""
    lines = [json.loads(line) for line in log.splitlines() if b'"pass.made"' in line]
    return [line["ms"] / 1000 for line in lines if line["name"] == "overdue_deliveries"]

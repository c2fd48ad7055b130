"""Runs of automations: their rate compared with peers, their latency, a burst, and waiting runs.

A run takes five steps, each of which changes the contact's row. Our runs include everything: claim, steps, log, counts,
and events for an endpoint that gets all of them. One peer makes five updates in five transactions with psycopg2 and
nothing else, with as many connections as an `automations` process has threads. The other takes five durable steps of
DBOS.
Targets: 60 % of the rate of the first and ten times that of the second, at most 2 statements and 2.5 ms of CPU for a
run. `bench/starts.py` and `bench/sleepers.py` have the other targets.
"""

import time
from dataclasses import dataclass
from statistics import median

from bench import runs, sites, sleepers, starts
from bench.automation_peers import Peer
from bench.costs import each, measured, written
from bench.errors import BenchError
from bench.figures import Row, at_most, breakdown, growth
from bench.programs import Program
from bench.rivals import NotInstalled, install_python
from bench.runs import Run
from bench.sites import Site, Tell
from bench.stamps import stamping
from bench.statements import counted

# Worker processes, each with the command of the Procfile.
COUNTS = {"automations": 2}
FIVE_STEPS = [
    {"id": "tag", "kind": "add_tag", "tag": "welcomed"},
    {"id": "first", "kind": "set_field", "field": "first_name", "value": "Grace"},
    {"id": "stage", "kind": "set_field", "field": "stage", "value": "new"},
    {"id": "last", "kind": "set_field", "field": "last_name", "value": "Hopper"},
    {"id": "end", "kind": "add_tag", "tag": "done"},
]
WORKSPACES = 4
SEEDED_A_SECOND = 600  # at least this many; with fewer, runs would be due before all are seeded
CONNECTIONS = 4
# For comparison only: more connections share more commits.
MORE_CONNECTIONS = 8
LEAST_OF_PLAIN, LEAST_OF_DBOS = 0.6, 10.0
MOST_STATEMENTS, MOST_CPU_MS = 2.0, 2.5


@dataclass(frozen=True)
class Size:
    """How many runs each contender makes in a round, and how many rounds there are."""

    ours: int = 8_000
    plain: int = 4_000
    dbos: int = 300
    rounds: int = 3


Sizes = tuple[Size, starts.Size, sleepers.Size]
FULL: Sizes = Size(), starts.Size(), sleepers.Size()
QUICK: Sizes = (
    Size(ours=800, plain=400, dbos=40, rounds=1),
    starts.Size(writes=20, burst=500, others=2),
    sleepers.Size(workspaces=5, contacts=400, spread=80, window=10),
)


def run(site: Site, tell: Tell, sizes: Sizes = FULL) -> list[Row]:
    of_speed, of_starts, of_sleepers = sizes
    rows = _speed(site, of_speed, tell)
    rows += starts.run(site, of_starts, tell)
    return rows + sleepers.run(of_sleepers, tell)


class Ours:
    """Makes runs of five steps in some workspaces; the running workers execute them."""

    def __init__(self, site: Site, address: str) -> None:
        self.name = "ours"
        self._site = site
        self._seeds = Program("bench.run_seeds", site.stack.environment)
        self._made = [self._seeds.ask(publish=FIVE_STEPS, address=address)[:2] for _ in range(WORKSPACES)]

    def run(self, number: int) -> Run:
        """Makes `number` runs, each with a contact of its own, all due at the same time."""
        self._seed(number)
        with measured(self._site) as spent:
            seconds = self._carry_out(number)
        served = {name: cpu for name, cpu in spent.items() if not name.startswith("python")}  # not the benchmark's own
        return Run(number, seconds, served)

    def statements(self, number: int) -> Row:
        """Counts the statements of a run. Restarts the processes before and after."""
        with counted(self._site) as statements:
            self._seed(number)
            self._carry_out(number)
        by_process = statements.by_process()
        if not by_process["automations"]:
            raise BenchError("The log has no statement of the automations processes.")
        del by_process["other"]  # the benchmark's own statements
        print(breakdown("Runs", statements, number), end="\n\n", flush=True)
        return at_most("runs", "SQL statements of a run", by_process.total() / number, MOST_STATEMENTS, places=2)

    def close(self) -> None:
        self._seeds.close()

    def _seed(self, number: int) -> None:
        """Creates runs that are all due at one time, and waits for that time.

        So no process finds some of them earlier.
        """
        due = time.time() + number / SEEDED_A_SECOND + 2
        for workspace, automation in self._made:
            contacts = self._seeds.ask(contacts=workspace, number=number // WORKSPACES)
            self._seeds.ask(runs=[workspace, automation], contacts=contacts, due=due)
        self._site.query("ANALYZE contacts, runs, enrolments")
        if (ahead := due - time.time()) < 0:
            raise BenchError(f"The runs were due {-ahead:.1f} s before all had been made.")
        time.sleep(ahead)

    def _carry_out(self, number: int) -> float:
        began = time.monotonic()
        self._seeds.ask(ring=[workspace for workspace, _ in self._made])
        seconds = runs.wait(number, self._left, began)
        if failed := self._site.query("SELECT count(*) FROM runs WHERE status <> 'completed'")[0][0]:
            raise BenchError(f"{failed} runs failed.")
        return seconds

    def _left(self) -> int:
        return int(self._site.query("SELECT count(*) FROM runs WHERE finished_at IS NULL")[0][0])


def _speed(site: Site, size: Size, tell: Tell) -> list[Row]:
    """Runs rounds with all contenders in each, so that other load affects them alike."""
    contenders: list[Ours | Peer] = []
    rows: list[Row] = []
    with stamping(site) as stamps:
        try:
            contenders.append(ours := Ours(site, stamps.url))
            sites.start_types(site, "automations", "scheduler")
            ours.run(size.ours // 4)  # a warm-up, which is not measured
            contenders += _peers(site, size, rows)
            results = _rounds(contenders, size, tell)
            rows += _described(results)
            rows.append(ours.statements(size.ours // 2))
            site.query("TRUNCATE deliveries")  # otherwise, webhooks of earlier runs would be sent too
            sites.start_types(site, "deliveries", "slow-deliveries", "retries")
            before, sending = written(site), ours.run(size.ours)
            rows += growth("runs", "run with its contact and webhooks", before, written(site), size.ours)
            figure = f"{sending.per_second:.0f}/s, {each(sending.spent, size.ours)}"
            rows.append(Row("runs", "ours while their webhooks are sent", figure))
        finally:
            for contender in contenders:
                contender.close()
    return rows


def _peers(site: Site, size: Size, rows: list[Row]) -> list[Peer]:
    try:
        install_python()
    except NotInstalled as error:
        rows.append(Row("runs", "peers", f"not run: {error}"))
        return []
    most = 10 * max(size.plain, size.dbos)
    return [
        Peer(site, "plain", CONNECTIONS, most),
        Peer(site, "plain", MORE_CONNECTIONS, most),
        Peer(site, "dbos", MORE_CONNECTIONS, most),
    ]


def _rounds(contenders: list[Ours | Peer], size: Size, tell: Tell) -> dict[str, list[Run]]:
    results: dict[str, list[Run]] = {contender.name: [] for contender in contenders}
    for _ in range(size.rounds):
        for contender in contenders:
            number = getattr(size, contender.name.partition(",")[0])
            results[contender.name].append(contender.run(number))
        tell("; ".join(f"{name} {made[-1].per_second:.0f}/s" for name, made in results.items()))
    return results


def _described(results: dict[str, list[Run]]) -> list[Row]:
    ours = results["ours"]
    rows = []
    for name, made in results.items():
        rates = [run.per_second for run in made]
        rows.append(Row("runs", name, f"{median(rates):.0f}/s ({min(rates):.0f} to {max(rates):.0f})"))
    targets = {
        f"plain, {CONNECTIONS} connections": LEAST_OF_PLAIN,
        f"dbos, {MORE_CONNECTIONS} connections": LEAST_OF_DBOS,
    }
    for name, theirs in results.items():
        if name != "ours":
            ratios = [our.per_second / their.per_second for our, their in zip(ours, theirs, strict=True)]
            least = targets.get(name)
            figure = f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
            target = f"at least {least:g}" if least else ""
            rows.append(Row("runs", f"ours, of {name}", figure, target, median(ratios) >= least if least else None))
    cheapest = min(ours, key=lambda run: sum(run.spent.values()))
    total = 1000 * sum(cheapest.spent.values()) / cheapest.deliveries
    rows.append(at_most("runs", "CPU of a run", total, MOST_CPU_MS, " ms", places=2))
    return [*rows, Row("runs", "CPU of a run, by process", each(cheapest.spent, cheapest.deliveries))]

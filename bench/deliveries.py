"""Throughput of deliveries, from release to the last recorded attempt, compared with three peers.

Targets, with 1, 20 and 1,000 endpoints: 2 times the rate of BullMQ with undici, 6 times that of Celery with requests,
and at most 0.2 SQL statements per delivery, including BEGIN and COMMIT. The peers use 20 endpoints, because the number
makes no difference to them.

All contenders send the same signed body over kept-alive TLS connections to the same nginx, and record each attempt in
the same PostgreSQL: the peers with one INSERT each, we with everything that production does. They share the same cores.
"""

from statistics import median

from bench import sites
from bench.costs import each
from bench.errors import BenchError
from bench.figures import Row, at_most, breakdown
from bench.nginx import nginx
from bench.ours import Mail, Ours
from bench.rivals import BULLMQ, CELERY, KINDS, NotInstalled, Rival
from bench.runs import Run
from bench.sites import Site, Tell

# Worker processes, each with the command of the Procfile.
COUNTS = {"deliveries": 2}
ROUNDS = 3
DELIVERIES = 30_000  # a run takes some seconds; in a run of one second, its start and end would be a tenth
ENDPOINTS = (1, 20, 1000)
WARMED_UP_WITH = 20
LEAST_RATIOS = {BULLMQ.name: 2.0, CELERY.name: 6.0}
MOST_STATEMENTS = 0.2
Contender = Ours | Rival


def run(site: Site, tell: Tell) -> list[Row]:
    """Runs rounds, then counts our statements.

    Each round has all contenders, so that other load affects them alike.
    """
    sites.start_types(site, "deliveries", "slow-deliveries", "retries")
    rivals: list[Rival] = []
    mail = Mail(site)
    try:
        with nginx(site.stack.directory / "nginx", site.stack.certificates) as receiver:
            ours = {number: Ours(site, receiver, mail, number) for number in ENDPOINTS}
            # Warms up, and creates the body that the peers send.
            tell(f"first run: {ours[WARMED_UP_WITH].run(DELIVERIES).per_second:.0f}/s")
            missing = {}
            for kind in KINDS:
                try:
                    kind.install()
                    rivals.append(Rival(kind, site, receiver, ours[WARMED_UP_WITH].body()))
                except NotInstalled as error:
                    missing[kind.name] = str(error)
                    tell(f"{kind.name} is not run: {error}")
            results = _rounds([*ours.values(), *rivals], tell)
            for rival in rivals:
                rival.stop()
            statements = [_statements(contender, number) for number, contender in ours.items()]
    finally:
        for rival in rivals:
            rival.stop()
        mail.close()
    rows = [row for name, runs in results.items() for row in _described(name, runs)]
    rows += [Row("deliveries", name, "not run") for name in missing]
    ratios = [_ratio(contender.name, results, kind.name) for contender in ours.values() for kind in KINDS]
    return [*rows, *ratios, *statements]


def _rounds(contenders: list[Contender], tell: Tell) -> dict[str, list[Run]]:
    """Returns the runs of each contender, by round. Each round starts with another contender."""
    results: dict[str, list[Run]] = {contender.name: [] for contender in contenders}
    for number in range(ROUNDS):
        turn = number * len(contenders) // ROUNDS
        for contender in contenders[turn:] + contenders[:turn]:
            results[contender.name].append(contender.run(DELIVERIES))
        tell("; ".join(f"{name} {runs[-1].per_second:.0f}/s" for name, runs in results.items()))
    return results


def _described(name: str, runs: list[Run]) -> list[Row]:
    rates = [run.per_second for run in runs]
    cheapest = min(runs, key=lambda run: sum(run.spent.values()))
    return [
        Row("deliveries", name, f"{median(rates):.0f}/s ({min(rates):.0f} to {max(rates):.0f})"),
        Row("deliveries", f"{name}, CPU of a delivery", each(cheapest.spent, cheapest.deliveries)),
    ]


def _ratio(our_name: str, results: dict[str, list[Run]], name: str) -> Row:
    """Describes the ratio of the medians, and the range of the ratios by round."""
    what, least = f"{our_name}, of {name}", LEAST_RATIOS.get(name)
    target = f"at least {least:.1f}" if least else ""
    if name not in results:
        return Row("deliveries", what, "not run", target)
    ours, theirs = ([run.per_second for run in results[whose]] for whose in (our_name, name))
    ratio, by_round = median(ours) / median(theirs), [our / their for our, their in zip(ours, theirs, strict=True)]
    figure = f"{ratio:.2f} ({min(by_round):.2f} to {max(by_round):.2f})"
    return Row("deliveries", what, figure, target, ratio >= least if least else None)


def _statements(ours: Ours, endpoints: int) -> Row:
    statements = ours.statements(DELIVERIES)
    logged = statements.by_process()["deliveries"]
    if not logged:
        raise BenchError("The log has no statement of the deliveries processes.")
    print(breakdown(f"Deliveries, {ours.name}", statements, DELIVERIES), end="\n\n", flush=True)
    what = f"SQL statements of a delivery, {endpoints:,} endpoint{'s' if endpoints > 1 else ''}"
    return at_most("deliveries", what, logged / DELIVERIES, MOST_STATEMENTS, places=3)

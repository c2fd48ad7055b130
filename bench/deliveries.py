"""Throughput of deliveries, from their release to the last recorded attempt, against three other ways to send them.

Targets: 2 times BullMQ with undici, 6 times Celery with requests, with 20 endpoints each; and at most 0.2 SQL
statements for each delivery with 1, 20 and 1,000 endpoints, BEGIN and COMMIT counted.

Everybody sends the same body, signed, over TLS and connections that are kept, to the same nginx, and records each
attempt in the same PostgreSQL: the peers by an INSERT each, we by all that production does. All have the same cores.
"""

from collections.abc import Callable
from statistics import median

from bench import sites
from bench.costs import each
from bench.errors import BenchError
from bench.figures import Row, at_most, breakdown
from bench.nginx import nginx
from bench.ours import Mail, Ours
from bench.rivals import BULLMQ, CELERY, KINDS, NotInstalled, Rival
from bench.runs import Run
from bench.sites import Site

# Workers of ours, each the command of the Procfile. 1 has not been compared with 2 in the same rounds yet.
COUNTS = {"deliveries": 2}
ROUNDS = 3
DELIVERIES = 15_000  # some seconds of each: in one second the beginning and the end would count for a tenth
ENDPOINTS = (1, 20, 1000)
COMPARED = 20
LEAST_RATIOS = {BULLMQ.name: 2.0, CELERY.name: 6.0}
MOST_STATEMENTS = 0.2
Tell = Callable[[str], None]
Contender = Ours | Rival


def run(site: Site, tell: Tell) -> list[Row]:
    """Rounds in which all take turns, so that what else the machine does falls on all alike; then the statements."""
    sites.start_types(site, "deliveries", "slow-deliveries", "retries")
    rivals: list[Rival] = []
    mail = Mail(site)
    try:
        with nginx(site.stack.directory / "nginx", site.stack.certificates) as receiver:
            ours = {number: Ours(site, receiver, mail, number) for number in ENDPOINTS}
            # It warms up, and makes the body that the others send.
            tell(f"first run: {ours[COMPARED].run(DELIVERIES).per_second:.0f}/s")
            missing = {}
            for kind in KINDS:
                try:
                    kind.install()
                    rivals.append(Rival(kind, site, receiver, ours[COMPARED].body()))
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
    compared = results[ours[COMPARED].name]
    ratios = [_ratio(compared, name, results.get(name)) for name in (kind.name for kind in KINDS)]
    return [*rows, *ratios, *statements]


def _rounds(contenders: list[Contender], tell: Tell) -> dict[str, list[Run]]:
    """The runs of each, round after round, in an order that turns."""
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


def _ratio(ours: list[Run], name: str, theirs: list[Run] | None) -> Row:
    """That of the medians, and the range of those of the rounds."""
    what, least = f"ours, of {name}, {COMPARED} endpoints", LEAST_RATIOS.get(name)
    target = f"at least {least:.1f}" if least else ""
    if theirs is None:
        return Row("deliveries", what, "not run", target)
    ratio = median(run.per_second for run in ours) / median(run.per_second for run in theirs)
    by_round = [our.per_second / their.per_second for our, their in zip(ours, theirs, strict=True)]
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

"""Accepting writes, against a bare Flask view that inserts a row, under the same gunicorn and the same load."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from statistics import median

import psycopg2

from bench import sites
from bench.bare import TABLE
from bench.costs import each, measured
from bench.figures import Row, breakdown
from bench.load import Plan
from bench.offers import offer
from bench.sites import Site
from bench.statements import counted
from tests.stack.ports import free_port
from tests.stack.process import Process
from tests.stack.processes import ROOT, process_types

ROUNDS = 15
ROUND_SECONDS = 1.5  # short and many: what else the machine does falls on all alike
WARM_SECONDS = 2.0
LEAST_RATIO = 0.60
Tell = Callable[[str], None]
Rates = dict[str, list[float]]


def run(site: Site, tell: Tell) -> list[Row]:
    """First with the web process alone, so that nothing but acceptance is measured; then with all the others."""
    sites.start(site, "web.1")
    with _bare(site) as bare:
        plans = {"bare": bare, "write": site.plan(ROUND_SECONDS), "keyed": site.plan(ROUND_SECONDS, keys=True)}
        alone = _rounds(site, plans, ROUNDS, tell)
        rows = [
            Row("accept", "bare Flask view", f"{median(alone['bare']):.0f}/s"),
            *_compared(alone, "write", "writes"),
            *_compared(alone, "keyed", "writes with an Idempotency-Key"),
            _cost(site, "the bare view", bare),
            _cost(site, "a write", plans["write"]),
            _cost(site, "a write with a key", plans["keyed"]),
            _statements(site, "a write", keys=False),
            _statements(site, "a write with a key", keys=True),
        ]
        site.query("TRUNCATE jobs, idempotency_keys")
        sites.start(site)
        busy = _rounds(site, {"bare": bare, "write": plans["write"]}, 3, tell)
    ratios = _ratios(busy, "write")
    figure = f"{median(busy['write']):.0f}/s, {median(ratios):.2f} of bare"
    return [*rows, Row("accept", "writes while workers apply them", figure)]


def _rounds(site: Site, plans: dict[str, Plan], rounds: int, tell: Tell) -> Rates:
    """Rates of each plan, round after round, in an order that turns."""
    for plan in plans.values():
        offer(replace(plan, first=site.new_contacts(), seconds=WARM_SECONDS))
    rates: Rates = {name: [] for name in plans}
    for number in range(rounds):
        names = list(plans)
        for name in names[number % len(names) :] + names[: number % len(names)]:
            _wait_until_applied(site)
            rates[name].append(offer(replace(plans[name], first=site.new_contacts())).per_second)
        tell(", ".join(f"{name} {values[-1]:.0f}/s" for name, values in rates.items()))
    return rates


def _wait_until_applied(site: Site) -> None:
    """Where workers run: until they have nothing to do."""
    if site.stack.processes.pids("writes"):
        while site.query("SELECT FROM jobs WHERE due_at IS NOT NULL LIMIT 1"):
            time.sleep(0.1)


def _ratios(rates: Rates, name: str) -> list[float]:
    return [ours / bare for ours, bare in zip(rates[name], rates["bare"], strict=True)]


def _compared(rates: Rates, name: str, title: str) -> list[Row]:
    ratios = _ratios(rates, name)
    spread = f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
    return [
        Row("accept", title, f"{median(rates[name]):.0f}/s"),
        Row("accept", f"{title}, of bare", spread, f"at least {LEAST_RATIO:.2f}", median(ratios) >= LEAST_RATIO),
    ]


def _cost(site: Site, title: str, plan: Plan) -> Row:
    with measured(site) as spent:
        requests = len(offer(replace(plan, first=site.new_contacts())).at)
    return Row("accept", f"CPU of {title}", each(spent, requests))


def _statements(site: Site, title: str, keys: bool) -> Row:
    with counted(site) as statements:
        writes = len(offer(site.plan(2.0, keys=keys)).at)
    statements.check(writes)
    print(breakdown(f"Accepting {title}", statements, writes), end="\n\n", flush=True)
    return Row("accept", f"SQL statements of {title}", f"{statements.total / writes:.2f}")


@contextmanager
def _bare(site: Site) -> Iterator[Plan]:
    """The bare view in the service's place: the same command, configuration and PostgreSQL; a database of its own."""
    stack, port = site.stack, free_port()
    address = stack.postgres.create_database("bare")
    with psycopg2.connect(address) as connection, connection.cursor() as cursor:
        cursor.execute(TABLE)
    connection.close()
    command = process_types()["web"].replace("app:create_app()", "bench.bare:create_app()")
    environment = stack.environment | {"PORT": str(port), "DATABASE_URL": address}
    process = Process("bare", command, environment, stack.directory / "logs", ROOT)
    process.start()
    try:
        _wait_until_listening(port)
        yield Plan(port, "/bare", site.token, 0, ROUND_SECONDS)
    finally:
        process.ask_to_stop()
        process.finish(time.monotonic() + 5)


def _wait_until_listening(port: int) -> None:
    # Ready for more than one connection: gunicorn binds before its worker has the application.
    time.sleep(2)
    offer(Plan(port, "/bare", "", 0, 0.1, connections=1))

"""What a second process of a type adds, for deliveries and for writes of many workspaces.

One process and two do the same work on the same cores. PostgreSQL, Redis and the receiver share the cores with the
processes, so the rows say how many cores were busy. If two processes keep all cores busy, more processes need more
cores, and each added core adds as much as a core does here.
"""

import time
from dataclasses import replace
from statistics import median
from typing import Any

from bench import offers, sites
from bench.costs import measured
from bench.figures import Row
from bench.nginx import nginx
from bench.ours import Mail, Ours
from bench.sites import Site, Tell
from tests.journeys.waiting import wait_until

COUNTS = {"deliveries": 2, "writes": 2}
ROUNDS = 3
DELIVERIES, ENDPOINTS = 30_000, 20
WRITES, WORKSPACES = 12_000, 8
SECONDS_TO_ACCEPT = 3  # seconds to accept the writes of a workspace


def run(site: Site, tell: Tell) -> list[Row]:
    """Measures one process and two in turn, so that other load affects both alike."""
    return [*_deliveries(site, tell), *_writes(site, tell)]


def _deliveries(site: Site, tell: Tell) -> list[Row]:
    sites.start_types(site, "deliveries", "slow-deliveries", "retries")
    mail = Mail(site)
    results: dict[int, list[tuple[float, float]]] = {1: [], 2: []}
    try:
        with nginx(site.stack.directory / "nginx", site.stack.certificates) as receiver:
            ours = Ours(site, receiver, mail, ENDPOINTS)
            ours.run(DELIVERIES)
            for _ in range(ROUNDS):
                for number in results:
                    _set_number(site, "deliveries", number)
                    made = ours.run(DELIVERIES)
                    results[number].append((made.per_second, sum(made.spent.values()) / made.seconds))
                tell(f"deliveries: {_said(results)}")
    finally:
        mail.close()
        site.stack.processes.stop()
    return _rows("deliveries", results)


def _writes(site: Site, tell: Tell) -> list[Row]:
    workspaces = [site.stack.command("workspace", "create", f"Shop {number}") for number in range(WORKSPACES)]
    results: dict[int, list[tuple[float, float]]] = {1: [], 2: []}
    for _ in range(ROUNDS):
        for number in results:
            results[number].append(_apply(site, workspaces, number))
        tell(f"writes: {_said(results)}")
    return _rows("writes", results)


def _apply(site: Site, workspaces: list[dict[str, Any]], number: int) -> tuple[float, float]:
    """Accepts writes while no process applies them, then starts `number` processes.

    Returns the rate, and the busy cores.
    """
    sites.start(site, "web.1")
    [(last,)] = site.query("SELECT coalesce(max(position), 0) FROM jobs")
    for made in workspaces:
        plan = site.plan(SECONDS_TO_ACCEPT, token=made["token"], window=WRITES // WORKSPACES)
        offers.offer(replace(plan, path=plan.path.replace(site.workspace, made["workspace"]["id"])))
    site.stack.processes.stop("web.1")
    left = f"SELECT count(*) FROM jobs WHERE position > {last} AND finished_at IS NULL"
    [(accepted,)] = site.query(left)
    for name in range(1, number + 1):
        site.stack.processes.start(f"writes.{name}")
    # Leaves out the time that the processes take to start.
    wait_until(lambda: site.query(left)[0][0] < 0.9 * accepted, 60, "the processes apply writes")
    [(waiting,)] = site.query(left)
    began = time.monotonic()
    with measured(site) as spent:
        wait_until(lambda: site.query(left)[0][0] == 0, 120, "all writes are applied")
    seconds = time.monotonic() - began
    site.stack.processes.stop()
    return waiting / seconds, sum(spent.values()) / seconds


def _set_number(site: Site, kind: str, number: int) -> None:
    second = f"{kind}.2"
    if number == 1:
        site.stack.processes.stop(second)
    else:
        site.stack.processes.start(second)
        site.stack.processes.wait_ready()


def _said(results: dict[int, list[tuple[float, float]]]) -> str:
    return ", ".join(
        f"{number} at {runs[-1][0]:.0f}/s with {runs[-1][1]:.2f} cores" for number, runs in results.items()
    )


def _rows(what: str, results: dict[int, list[tuple[float, float]]]) -> list[Row]:
    rates = {number: median(rate for rate, _ in runs) for number, runs in results.items()}
    cores = {number: median(busy for _, busy in runs) for number, runs in results.items()}
    return [
        *(
            Row("scaling", f"{what}, {n} process{'es' * (n > 1)}", f"{rates[n]:.0f}/s, {cores[n]:.2f} cores busy")
            for n in rates
        ),
        Row("scaling", f"{what}, two to one", f"{rates[2] / rates[1]:.2f}"),
    ]

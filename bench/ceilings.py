"""Ceilings: compares rates with those of another application under the same gunicorn and load."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from random import Random
from statistics import median

from bench.costs import each, measured
from bench.figures import Row
from bench.load import Plan
from bench.offers import offer
from bench.sites import Site, Tell
from tests.stack.ports import free_port
from tests.stack.process import Process
from tests.stack.processes import ROOT, process_types

WARM_SECONDS = 2.0
Rates = dict[str, list[float]]


def rounds(site: Site, plans: dict[str, Plan], number: int, tell: Tell) -> Rates:
    """Returns the rates of each plan, by round.

    The plans run in random order, because the preceding plan affects a rate.
    """
    order = Random(1)
    for plan in plans.values():
        offer(replace(plan, first=site.new_contacts(), seconds=WARM_SECONDS))
    rates: Rates = {name: [] for name in plans}
    for _ in range(number):
        for name in order.sample(list(plans), len(plans)):
            _wait_until_applied(site)
            rates[name].append(offer(replace(plans[name], first=site.new_contacts())).per_second)
        tell(", ".join(f"{name} {values[-1]:.0f}/s" for name, values in rates.items()))
    return rates


def compared(section: str, rates: Rates, name: str, title: str, least: float, ceiling: str = "bare") -> list[Row]:
    """Describes the rate, and its ratio to the ceiling's rate in the same round."""
    shares = ratios(rates, name, ceiling)
    spread = f"{median(shares):.2f} ({min(shares):.2f} to {max(shares):.2f})"
    return [
        Row(section, title, f"{median(rates[name]):.0f}/s"),
        Row(section, f"{title}, of {ceiling}", spread, f"at least {least:.2f}", median(shares) >= least),
    ]


def ratios(rates: Rates, name: str, ceiling: str = "bare") -> list[float]:
    """Returns the ratio of a plan's rate to the ceiling's, by round."""
    return [ours / theirs for ours, theirs in zip(rates[name], rates[ceiling], strict=True)]


def cost(section: str, site: Site, title: str, plan: Plan) -> Row:
    """Measures the CPU time of one request of the plan, by process type."""
    with measured(site) as spent:
        requests = len(offer(replace(plan, first=site.new_contacts())).at)
    return Row(section, f"CPU of {title}", each(spent, requests))


@contextmanager
def beside(site: Site, name: str, application: str, **settings: str) -> Iterator[int]:
    """Runs another web process with its own settings and that application. Yields its port."""
    stack, port = site.stack, free_port()
    command = process_types()["web"].replace("app.gunicorn", "bench.bare_gunicorn")
    command = command.replace("app:create_app()", application)
    environment = stack.environment | {"PORT": str(port)} | settings
    process = Process(name, command, environment, stack.directory / "logs", ROOT)
    process.start()
    try:
        # No readiness check: gunicorn binds before its worker has loaded the application.
        time.sleep(3)
        yield port
    finally:
        process.ask_to_stop()
        process.finish(time.monotonic() + 5)


def _wait_until_applied(site: Site) -> None:
    """Waits until the `writes` workers, if any run, have nothing to do."""
    if site.stack.processes.pids("writes"):
        while site.query("SELECT 1 FROM jobs WHERE due_at IS NOT NULL LIMIT 1"):
            time.sleep(0.1)

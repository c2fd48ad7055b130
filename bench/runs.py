"""Runs: a number of deliveries, from their joint release until the last attempt is recorded."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from bench.costs import measured
from bench.errors import BenchError
from bench.nginx import Nginx
from bench.sites import Site

PATIENCE_SECONDS = 180
LONGEST_LOOK_SECONDS = 0.25
SHORTEST_LOOK_SECONDS = 0.01


@dataclass(frozen=True)
class Run:
    """A run: its number of deliveries, and its duration. `spent`: CPU seconds by process type."""

    deliveries: int
    seconds: float
    spent: dict[str, float]

    @property
    def per_second(self) -> float:
        return self.deliveries / self.seconds


def run(site: Site, nginx: Nginx, number: int, release: Callable[[], None], left: Callable[[], int]) -> Run:
    """Releases `number` deliveries and waits until `left` returns 0.

    Raises BenchError if that takes too long, or if nginx got a different number of requests.
    """
    requests_before = nginx.requests()
    with measured(site) as spent:
        began = time.monotonic()
        release()
        seconds = wait(number, left, began)
    if (requests := nginx.requests() - requests_before - 1) != number:
        raise BenchError(f"nginx got {requests} requests, and there were {number} deliveries.")
    return Run(number, seconds, spent)


def wait(number: int, left: Callable[[], int], began: float) -> float:
    """Returns the seconds from `began` until nothing is left.

    Raises BenchError if that takes too long. Polls more often towards the end.
    """
    while True:
        unrecorded = left()
        elapsed = time.monotonic() - began
        if unrecorded == 0:
            return elapsed
        if elapsed > PATIENCE_SECONDS:
            raise BenchError(f"{unrecorded} of {number} were not recorded in {PATIENCE_SECONDS} s.")
        expected = elapsed * unrecorded / max(1, number - unrecorded)
        time.sleep(min(max(expected / 2, SHORTEST_LOOK_SECONDS), LONGEST_LOOK_SECONDS))

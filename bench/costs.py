"""CPU time by process type: what figures on a busy machine can still be compared by."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

import psutil

from bench.sites import Site

TYPES = ("web", "writes", "deliveries", "slow-deliveries", "retries", "scheduler")


@contextmanager
def measured(site: Site) -> Iterator[dict[str, float]]:
    """CPU seconds spent inside by each process type, postgres and redis; filled in at the end."""
    spent: dict[str, float] = {}
    before = _cpu_seconds(site)
    yield spent
    for name, seconds in sorted(_cpu_seconds(site).items()):
        spent[name] = seconds - before.get(name, 0.0)


def each(spent: Mapping[str, float], number: int) -> str:
    """The CPU milliseconds of one of so many, by process type."""
    shares = [f"{name} {1000 * seconds / number:.2f}" for name, seconds in spent.items() if seconds]
    return f"{1000 * sum(spent.values()) / number:.2f} ms ({', '.join(shares)})"


def _cpu_seconds(site: Site) -> dict[str, float]:
    """User and system time so far, with that of all children, ended ones too. Our own children are the stack."""
    kinds = {pid: kind for kind in TYPES for pid in site.stack.processes.pids(kind)}
    found: dict[str, float] = defaultdict(float)
    for leader in psutil.Process().children():
        name = kinds.get(leader.pid) or leader.name().partition("-")[0]
        for process in (leader, *leader.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):  # ended since; its time is its parent's from now on
                found[name] += sum(process.cpu_times()[:4])
    return found

"""CPU time by process type, and bytes written: comparable even between runs on a busy machine."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

import psutil

from bench.sites import Site

TYPES = (
    "web",
    "realtime",
    "writes",
    "automations",
    "deliveries",
    "slow-deliveries",
    "retries",
    "messages",
    "scheduler",
)

# The WAL so far, and the size of all tables with their indexes.
_WRITTEN = """
    SELECT (pg_current_wal_lsn() - '0/0')::bigint, sum(pg_total_relation_size(oid))::bigint
    FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
"""


@contextmanager
def measured(site: Site) -> Iterator[dict[str, float]]:
    """Yields the CPU seconds that each process type, postgres and redis spend in the block.

    The mapping is filled at the end of the block.
    """
    spent: dict[str, float] = {}
    before = _cpu_seconds(site)
    yield spent
    for name, seconds in sorted(_cpu_seconds(site).items()):
        spent[name] = seconds - before.get(name, 0.0)


def each(spent: Mapping[str, float], number: int) -> str:
    """Formats the CPU milliseconds per item, in all and by process type."""
    shares = [f"{name} {1000 * seconds / number:.2f}" for name, seconds in spent.items() if seconds]
    return f"{1000 * sum(spent.values()) / number:.2f} ms ({', '.join(shares)})"


def written(site: Site) -> tuple[int, int]:
    """Returns the bytes of WAL written so far, and the bytes of all tables with their indexes."""
    [(wal, kept)] = site.query(_WRITTEN)
    return int(wal), int(kept)


def _cpu_seconds(site: Site) -> dict[str, float]:
    """Returns the user and system seconds of each process type so far, including ended children.

    The stack's processes are child processes of this one.
    """
    kinds = {pid: kind for kind in TYPES for pid in site.stack.processes.pids(kind)}
    found: dict[str, float] = defaultdict(float)
    for leader in psutil.Process().children():
        name = kinds.get(leader.pid) or leader.name().partition("-")[0]
        for process in (leader, *leader.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):  # this process has ended; its parent now counts its time
                found[name] += sum(process.cpu_times()[:4])
    return found

"""The whole service at rest, one process of each type: what each process and PostgreSQL cost, in percent of a core.

With `PROCFILE=small` these are the two of Procfile.small.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import psutil

from tests.doors.services import service, tenant
from tests.journeys.audit import rows
from tests.journeys.waiting import wait_until
from tests.stack.stack import Stack

SECONDS = float(os.environ.get("SECONDS_AT_REST", "60"))
MOST_PERCENT = 5.0
# A new installation counts its usage from the first of the month, a part every minute; that ends.
MOST_SETTLING_SECONDS = 600
_IS_COUNTED = "SELECT min(counted_until) > now() - interval '10 minutes' FROM usage_progress"


def measure(tell: Callable[[str], None]) -> None:
    with service() as stack:
        tenant(stack, "At rest")
        time.sleep(5)
        wait_until(lambda: rows(stack, _IS_COUNTED) == [(True,)], MOST_SETTLING_SECONDS, "the month's usage is counted")
        before = costs(stack)
        time.sleep(SECONDS)
        after = costs(stack)
    found = {name: (after[name] - before.get(name, 0.0)) / SECONDS * 100 for name in after}
    for name, percent in sorted(found.items(), key=lambda item: -item[1]):
        tell(f"{percent:5.2f} %  {name}")
    tell(f"{sum(found.values()):5.2f} %  all")
    assert sum(found.values()) <= MOST_PERCENT, f"more than {MOST_PERCENT} %"


def costs(stack: Stack) -> dict[str, float]:
    """Seconds of CPU so far: of each type of processes with its children, of each backend, and of Redis."""
    spent: dict[str, float] = {}
    for name in stack.processes.names:
        leader = psutil.Process(stack.processes.pid(name))
        for each in (leader, *leader.children(recursive=True)):
            _add(spent, name, each)
    # The servers' processes have this stack's directory on their command lines; PostgreSQL's backends are its children.
    for process in psutil.process_iter(["cmdline"]):
        line = " ".join(process.info["cmdline"] or [])
        if str(stack.directory / "postgres") in line:
            for each in (process, *process.children(recursive=True)):
                _add(spent, f"postgres {' '.join(each.cmdline())[:60]} [{each.pid}]", each)
        elif "redis" in line and str(stack.redis.port) in line:
            _add(spent, "redis", process)
    return spent


def _add(spent: dict[str, float], name: str, process: psutil.Process) -> None:
    times = process.cpu_times()
    spent[name] = spent.get(name, 0.0) + times.user + times.system

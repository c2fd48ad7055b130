"""A contact with sixty thousand unfinished runs becomes a part of another; a second tenant goes on, and so do the runs.

The longest time for which the transactions of the merge held the workspace is told from the time of its parts.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from tests.doors.services import service, tenant
from tests.doors.victims import victim
from tests.journeys.audit import rows
from tests.journeys.runs import make_sleepers, publish
from tests.journeys.test_controls import STEPS
from tests.journeys.waiting import wait_until
from tests.stack.stack import Stack

RUNS, MOST_SECONDS = 60_000, 300


def measure(tell: Callable[[str], None]) -> None:
    """The victim's act: a write of its own is applied."""
    with service() as stack:
        attacker, other = tenant(stack, "Attacker"), tenant(stack, "Victim")
        automation = publish(attacker, STEPS)
        make_sleepers(stack, attacker.workspace_id, automation, RUNS)
        caller, own = other.caller(), attacker.caller()
        kept = own.apply("POST", "contacts", {"external_id": "kept"}).data["id"]
        gone = own.apply("POST", "contacts", {"external_id": "gone"}).data["id"]
        rows(stack, "UPDATE runs SET contact_id = %s WHERE automation_id = %s RETURNING 1", gone, automation)
        with victim(lambda: caller.apply("POST", "contacts", {"external_id": "one"})) as living:
            began = time.monotonic()
            job = own.call("POST", f"contacts/{kept}/merge", {"contact_id": gone}).data["id"]
            longest = 0.0
            while own.get(f"jobs/{job}")["status"] not in ("succeeded", "failed"):
                assert time.monotonic() < began + MOST_SECONDS, f"not merged in {MOST_SECONDS} s"
                longest = max(longest, _oldest_transaction(stack))
                time.sleep(0.02)
            took = time.monotonic() - began
            wait_until(lambda: _left(stack, gone) == 0, 60, "all runs have followed")
        tell(f"{RUNS:,} runs followed in {took:.1f} s, longest transaction {longest:.2f} s; victim: {living}")
        assert longest < 2.0, "others of the workspace wait for it"
        living.check()


def _oldest_transaction(stack: Stack) -> float:
    """Seconds that the oldest transaction which writes has been open."""
    age = "coalesce(max(extract(epoch FROM clock_timestamp() - xact_start)), 0)::float"
    [(seconds,)] = rows(stack, f"SELECT {age} FROM pg_stat_activity WHERE backend_xid IS NOT NULL")
    return float(seconds)


def _left(stack: Stack, contact_id: str) -> int:
    [(number,)] = rows(stack, "SELECT count(*) FROM runs WHERE contact_id = %s", contact_id)
    return int(number)

"""Thousands of runs fall due together, and their tenant cancels all at that moment; another tenant goes on."""

from __future__ import annotations

from collections.abc import Callable

from tests.doors.services import service, tenant
from tests.doors.victims import victim
from tests.journeys.audit import rows
from tests.journeys.runs import make_due, make_sleepers, publish, statuses
from tests.journeys.test_controls import STEPS
from tests.journeys.waiting import wait_until
from tests.stack.stack import Stack

RUNS = 9_900


def measure(tell: Callable[[str], None]) -> None:
    """The victim's act: a write of its own is applied."""
    with service() as stack:
        attacker, other = tenant(stack, "Attacker"), tenant(stack, "Victim")
        automation = publish(attacker, STEPS)
        make_sleepers(stack, attacker.workspace_id, automation, RUNS)
        caller = other.caller()
        with victim(lambda: caller.apply("POST", "contacts", {"external_id": "one"})) as living:
            make_due(stack, automation)
            wait_until(lambda: _taken_up(stack, automation), 20, "the first have been taken up")
            began = statuses(stack, automation)["completed"]
            job = attacker.caller().call("POST", f"automations/{automation}/cancel-runs", {}).data["id"]
            wait_until(lambda: attacker.caller().get(f"jobs/{job}")["status"] == "succeeded", 120, "the job succeeds")
            wait_until(lambda: _unfinished(stack, automation) == 0, 120, "all runs have ended")
        ended = statuses(stack, automation)
        tell(f"{began} completed before; at the end {dict(ended)}; victim: {living}")
        # What is under way, and what is taken up until the mark is there, goes on.
        assert ended["cancelled"] > RUNS / 2
        living.check()


def _taken_up(stack: Stack, automation: str) -> bool:
    return bool(statuses(stack, automation)["completed"])


def _unfinished(stack: Stack, automation: str) -> int:
    [(number,)] = rows(stack, "SELECT count(*) FROM runs WHERE automation_id = %s AND finished_at IS NULL", automation)
    return int(number)

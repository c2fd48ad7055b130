"""Two schedulers: when the leader dies, the other takes over."""

from __future__ import annotations

import pytest

from tests.journeys.audit import rows, settle
from tests.journeys.faults import nobody_at
from tests.journeys.shops import open_shop
from tests.journeys.waiting import wait_until
from tests.stack.receiver import Receiver
from tests.stack.stack import Stack


@pytest.mark.several_processes
def test_when_the_leading_scheduler_is_killed_the_other_leads_within_ten_seconds(
    stack: Stack, receiver: Receiver
) -> None:
    shop = open_shop(stack, receiver)
    wait_until(lambda: _leader(stack) is not None, 10, "a scheduler leads")
    killed, epoch = _leader(stack) or "", _epoch(stack)

    stack.processes.kill(killed)
    stack.processes.stop(killed)
    try:
        wait_until(lambda: _leader(stack) not in (None, killed), 10, "the other leads")
        assert _epoch(stack) == epoch + 1
        with nobody_at(stack, "retries"):
            # Only a scheduler wakes retries.
            receiver.behaviour = lambda *_: 200 if len(receiver.received) > 1 else 500
            shop.caller().apply("POST", "contacts", {"external_id": "ada"})
            settle(stack, [shop], seconds=10)
    finally:
        stack.processes.start(killed)

    assert [delivery["attempts"] for delivery in shop.caller().get("webhooks/deliveries")] == [2]


def _leader(stack: Stack) -> str | None:
    """The name of the process that holds the lease; None while no running one does."""
    held = rows(stack, "SELECT holder FROM leases WHERE name = 'scheduler' AND expires_at > now()")
    pids = [int(holder.split(":")[1]) for (holder,) in held]
    names = [f"scheduler.{number}" for number in (1, 2)]
    return next((name for name in names if stack.processes.pid(name) in pids), None)


def _epoch(stack: Stack) -> int:
    return int(rows(stack, "SELECT epoch FROM leases WHERE name = 'scheduler'")[0][0])

"""Runs take each step once, whatever happens to the processes, and delay no others."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from tests.journeys.audit import rows
from tests.journeys.faults import empty_redis, kill, restart_postgres
from tests.journeys.runs import (
    CALLS,
    calls,
    flaws,
    make_visitors,
    publish_walk,
    start,
    unfinished_runs,
)
from tests.journeys.shops import open_shop
from tests.journeys.waiting import wait_until
from tests.stack.receiver import Answer, Receiver
from tests.stack.stack import Stack

CONTACTS, EACH = 10, 4
# A request that was under way when its worker died is sent again when its lease ends, after 40 seconds.
SETTLE_SECONDS = 120
QUIET_RUNS = 5
FINISHED = "SELECT 1 FROM runs WHERE id = %s AND finished_at IS NOT NULL"


def kill_workers(stack: Stack) -> None:
    kill(stack, "automations")


@pytest.mark.parametrize(
    "fault",
    [
        None,
        kill_workers,
        pytest.param(empty_redis, marks=pytest.mark.nightly),
        pytest.param(restart_postgres, marks=pytest.mark.nightly),
    ],
)
def test_each_step_takes_effect_once(
    fault: Callable[[Stack], None] | None, stack: Stack, receiver: Receiver, report: Callable[[object], None]
) -> None:
    shop = open_shop(stack, receiver)
    automation, contacts = publish_walk(shop, receiver, 1), make_visitors(stack, shop, CONTACTS)
    caller = shop.caller()
    receiver.behaviour = lambda path, _: Answer(delay_seconds=0.3 if path.startswith(CALLS) else 0)

    began = time.monotonic()
    started = [start(caller, automation, contacts[n % CONTACTS], n) for n in range(CONTACTS * EACH)]
    if fault is not None:
        fault(stack)  # while the first steps are taken
        wait_until(lambda: calls(receiver), 20, "requests arrive")
        fault(stack)

    wait_until(lambda: unfinished_runs(stack, shop) == 0, SETTLE_SECONDS, "every run has ended")
    report(f"{len(started)} runs, {time.monotonic() - began:.1f} s")
    assert list(flaws(stack, shop, receiver, started)) == []


def test_a_server_that_hangs_does_not_delay_the_runs_of_another_workspace(
    stack: Stack, receiver: Receiver, report: Callable[[object], None]
) -> None:
    busy, quiet = open_shop(stack, receiver), open_shop(stack, receiver)
    released, automation = threading.Event(), publish_walk(busy, receiver, 1)
    receiver.behaviour = lambda path, _: Answer(released=released if path.startswith(f"{CALLS}/1") else None)
    try:
        contacts, caller = make_visitors(stack, busy, CONTACTS), busy.caller()
        hanging = [start(caller, automation, contacts[number % CONTACTS], 1000 + number) for number in range(60)]
        wait_until(lambda: calls(receiver) >= 20, 20, "requests hang")
        automation, contacts = publish_walk(quiet, receiver, 1), make_visitors(stack, quiet, 1)
        caller = quiet.caller()
        taken = []
        for number in range(QUIET_RUNS):
            began = time.monotonic()
            run = start(caller, automation, contacts[0], 2000 + number)
            wait_until(lambda run=run: rows(stack, FINISHED, run.run_id), 20, "the quiet run ends")
            taken.append(time.monotonic() - began)
    finally:
        released.set()

    report(f"the slowest of {QUIET_RUNS} runs beside the server that hangs took {max(taken):.2f} s")
    assert max(taken) < 5  # one of which the run waits
    wait_until(lambda: unfinished_runs(stack, busy) == 0, SETTLE_SECONDS, "the runs that hung end")
    own = "SELECT 1 FROM runs WHERE workspace_id = %s AND parent_id IS NULL"
    assert len(rows(stack, own, busy.workspace_id)) == len(hanging)


@pytest.mark.several_processes
def test_a_run_is_woken_by_the_scheduler_where_no_worker_does(stack: Stack, receiver: Receiver) -> None:
    """Every bell is lost while it waits."""
    shop = open_shop(stack, receiver)
    started = [start(shop.caller(), publish_walk(shop, receiver, 2), make_visitors(stack, shop, 1)[0], 1)]
    wait_until(
        lambda: rows(stack, "SELECT 1 FROM runs WHERE status = 'waiting' AND id = %s", started[0].run_id),
        20,
        "it waits",
    )
    stack.processes.stop("automations.1")
    wait_until(
        lambda: rows(stack, "SELECT 1 FROM runs WHERE due_at IS NOT NULL AND id = %s", started[0].run_id),
        20,
        "it is due",
    )
    empty_redis(stack)
    stack.processes.start("automations.1")

    wait_until(lambda: unfinished_runs(stack, shop) == 0, SETTLE_SECONDS, "the run has ended")
    assert list(flaws(stack, shop, receiver, started)) == []

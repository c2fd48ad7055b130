"""A workspace with a long queue does not delay another's writes."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.doors.services import tenant
from tests.doors.templates import HOSTILE, Attack, enter, runner
from tests.journeys.audit import rows, unfinished
from tests.journeys.load import Load
from tests.journeys.shops import Shop, open_shop, open_shops
from tests.journeys.waiting import wait_until
from tests.stack.receiver import Receiver
from tests.stack.stack import Stack

QUEUE = 2000
RUNS = 20
CLIENTS = 4
WORKSPACES, ENDPOINTS, WRITES = 4, 1_000, 25


def test_a_long_queue_does_not_delay_the_single_write_of_another_workspace(
    stack: Stack, receiver: Receiver, report: Callable[[object], None]
) -> None:
    busy, quiet = open_shop(stack, receiver), open_shop(stack, receiver)
    workers = stack.processes.names_of("writes")
    load = Load([busy], clients=CLIENTS, contacts=100, pause_seconds=0, most=QUEUE // CLIENTS)
    try:
        with ThreadPoolExecutor() as pool:
            list(pool.map(stack.processes.stop, workers))
        with load:
            load.finish()
        stack.processes.start(workers[0])
        wait_until(lambda: _waiting(stack, busy) < QUEUE, 30, "the long queue is worked off")
        taken = _time_writes_while(lambda: _waiting(stack, busy) > 0, quiet)
    finally:
        for name in workers:
            stack.processes.start(name)

    report(f"the slowest of {len(taken)} single writes beside the queue took {max(taken):.2f} s")
    assert max(taken) < 2
    wait_until(lambda: unfinished(stack, [busy, quiet]) == 0, 60, "all is done")


@pytest.mark.nightly
def test_workspaces_with_a_thousand_endpoints_do_not_delay_the_single_write_of_another(
    stack: Stack, receiver: Receiver, report: Callable[[object], None]
) -> None:
    busy, quiet = open_shops(stack, receiver, WORKSPACES), open_shop(stack, receiver)
    workers = stack.processes.names_of("writes")
    for shop in busy:
        _open_endpoints(stack, shop)
    load = Load(busy, clients=WORKSPACES, contacts=WRITES, pause_seconds=0, most=WRITES)
    try:
        with ThreadPoolExecutor() as pool:
            list(pool.map(stack.processes.stop, workers))
        with load:
            load.finish()
        stack.processes.start(workers[0])
        wait_until(lambda: rows(stack, "SELECT 1 FROM deliveries WHERE status = 'held' LIMIT 1"), 30, "it has begun")
        taken = _time_writes_while(lambda: _has_mail(stack), quiet)
    finally:
        for name in workers:
            stack.processes.start(name)

    report(f"of {len(taken)} single writes 99 % took at most {sorted(taken)[int(len(taken) * 0.99)]:.2f} s")
    assert max(taken) < 2
    made = "SELECT count(*), count(DISTINCT (event_id, endpoint_id)) FROM deliveries WHERE status = 'held'"
    events = rows(
        stack, "SELECT count(*) FROM events WHERE workspace_id = ANY(%s)", [shop.workspace_id for shop in busy]
    )
    assert rows(stack, made) == [(events[0][0] * ENDPOINTS,) * 2]


def _open_endpoints(stack: Stack, shop: Shop) -> None:
    """Gives the shop many endpoints that are stopped, so that nothing but the writes' own work is done."""
    rows(
        stack,
        "INSERT INTO endpoints (id, workspace_id, address, events, secret, state)"
        " SELECT 'whe_' || lpad(number::text, 4, '0') || %s, %s, 'https://127.0.0.1:1/', '{*}', 'x', 'stopped'"
        " FROM generate_series(1, %s) AS number RETURNING id",
        *(shop.workspace_id[-22:], shop.workspace_id, ENDPOINTS),
    )


def _has_mail(stack: Stack) -> bool:
    has_mail = (
        "EXISTS (SELECT FROM jobs WHERE due_at IS NOT NULL) OR EXISTS (SELECT FROM events WHERE due_at IS NOT NULL)"
    )
    return bool(rows(stack, f"SELECT {has_mail}")[0][0])


def _waiting(stack: Stack, shop: Shop) -> int:
    query = "SELECT count(*) FROM jobs WHERE workspace_id = %s AND due_at IS NOT NULL"
    return int(rows(stack, query, shop.workspace_id)[0][0])


def test_runs_with_a_thousand_templates_end_and_hold_up_no_other_workspaces(stack: Stack) -> None:
    attacker, run = tenant(stack, "Attacker"), runner(stack, tenant(stack, "Victim"))
    enter(attacker, Attack(HOSTILE, RUNS))

    run()  # of another workspace; it waits until the run has completed

    ended = "SELECT status, failure->>'code' FROM runs WHERE workspace_id = %s AND finished_at IS NOT NULL"
    expected = [("failed", "limit")] * RUNS
    wait_until(lambda: rows(stack, ended, attacker.workspace_id) == expected, 60, "the attacker's runs have ended")


def _time_writes_while(is_busy: Callable[[], bool], quiet: Shop) -> list[float]:
    """The seconds that each of the quiet shop's writes took while the others were busy."""
    caller, taken = quiet.caller(), []
    while True:
        began = time.monotonic()
        caller.apply("POST", "contacts", {"external_id": f"contact-{len(taken)}"})
        seconds = time.monotonic() - began
        if not is_busy():
            assert taken, "The others were done before a single write was"
            return taken
        taken.append(seconds)

"""Processes stopped during their work finish it, and a stale one changes nothing."""

from __future__ import annotations

import signal
from collections.abc import Callable

import pytest

from tests.journeys.attempts import check_logs, unlogged
from tests.journeys.audit import Figures, audit, rows, settle
from tests.journeys.conftest import Ends
from tests.journeys.copies import make_copies
from tests.journeys.faults import names
from tests.journeys.load import Load
from tests.journeys.logs import lines
from tests.journeys.shops import Shop, open_shop, open_shops
from tests.journeys.waiting import wait_until
from tests.stack.processes import GRACE_SECONDS
from tests.stack.receiver import Answer, Receiver
from tests.stack.stack import Stack

HELD = 60_000  # a sweep of some seconds: a worker takes one or two to end


@pytest.mark.parametrize("kind", ["writes", "deliveries"])
def test_a_worker_asked_to_end_finishes_what_is_in_hand(
    kind: str, stack: Stack, receiver: Receiver, ends: Ends, report: Callable[[Figures], None]
) -> None:
    load = Load(open_shops(stack, receiver, 2))
    asked = names(stack, kind)
    receiver.behaviour = lambda *_: Answer(delay_seconds=0.3)
    ends.seen.clear()
    left = _left(stack)

    with load:
        load.go_on(100)
        for name in asked:
            stack.processes.kill(name, signal.SIGTERM, tree=False)
        wait_until(lambda: len(ends.seen) >= len(asked), GRACE_SECONDS, f"{kind} ends")
        load.go_on(100)

    figures = audit(stack, receiver, load)
    report(figures)
    assert sorted(ends.seen) == [(name, 0) for name in sorted(asked)]
    assert figures.duplicates == 0
    assert _left(stack) == left


@pytest.mark.several_processes
def test_a_worker_that_comes_back_after_its_lease_records_nothing(stack: Stack, receiver: Receiver) -> None:
    """The process is frozen during its attempts until another has repeated and recorded them."""
    shop = open_shop(stack, receiver)
    receiver.behaviour = lambda *_: Answer(delay_seconds=4)
    stack.processes.stop("deliveries.2")
    try:
        # A window begins with one request.
        shop.caller().call("POST", "contacts", {"external_id": "contact"})
        assert receiver.wait_for(lambda each: len(each.received) == 1)
        stack.processes.freeze("deliveries.1")
        [(under_way,)] = rows(
            stack, "SELECT count(*) FROM deliveries WHERE endpoint_id = %s AND attempts = 0", shop.endpoint_id
        )
        receiver.behaviour = None
        stack.processes.start("deliveries.2")
        settle(stack, [shop])
        before = _recorded(stack, shop)
    finally:
        stack.processes.thaw("deliveries.1")
        stack.processes.start("deliveries.2")

    assert under_way > 0
    wait_until(lambda: len(_stale(stack, shop)) == under_way, 20, "the late worker has tried to record its attempts")
    assert _recorded(stack, shop) == before
    assert [status for _, status, _, _ in before] == ["delivered"]


@pytest.mark.nightly
def test_slow_deliveries_asked_to_end_record_what_is_under_way(
    stack: Stack, receiver: Receiver, ends: Ends, report: Callable[[object], None]
) -> None:
    shop = open_shop(stack, receiver)
    receiver.behaviour = lambda *_: Answer(delay_seconds=2.5)
    for number in range(20):
        shop.caller().call("POST", "contacts", {"external_id": f"contact-{number}"})
    # Two, so that the fast lane has no attempts left in flight.
    wait_until(lambda: len(_lines_of(stack, "slow-deliveries.1", shop)) >= 2, 60, "the slow lane serves it")
    wait_until(lambda: _leased(stack, "deliveries", shop) > 0, 20, "something is under way")
    ends.seen.clear()

    [name] = names(stack, "slow-deliveries")
    stack.processes.kill(name, signal.SIGTERM, tree=False)
    wait_until(lambda: ends.seen, GRACE_SECONDS, "the process ends")
    leased = _leased(stack, "deliveries", shop)

    receiver.behaviour = None
    settle(stack, [shop], seconds=60)
    found = check_logs(stack, [shop])
    report(f"{sum(log.attempts for log in found)} attempts, {len(unlogged(found, receiver))} of them not recorded")
    assert ends.seen == [(name, 0)]
    assert leased == 0
    assert unlogged(found, receiver) == []
    assert [(log.status, log.claim) for log in found] == [("delivered", 1)] * 20


@pytest.mark.nightly
def test_retries_asked_to_end_in_a_sweep_leave_the_rest_of_it_to_the_next(
    stack: Stack, receiver: Receiver, ends: Ends, report: Callable[[object], None]
) -> None:
    shop = open_shop(stack, receiver)
    shop.caller().apply("POST", "contacts", {"external_id": "ada"})
    settle(stack, [shop])
    held = make_copies(stack, shop, "held", HELD)
    ends.seen.clear()

    # Deleting it cancels its deliveries in batches.
    shop.caller().apply("DELETE", f"webhooks/endpoints/{shop.endpoint_id}")
    wait_until(lambda: _changed(stack, shop) > 0, 20, "the sweep is under way")
    [name] = names(stack, "retries")
    stack.processes.kill(name, signal.SIGTERM, tree=False)
    wait_until(lambda: ends.seen, GRACE_SECONDS, "the process ends")
    leased, changed = _leased(stack, "sweeps", shop), _changed(stack, shop)

    wait_until(lambda: not _is_swept(stack, shop), 60, "another ends the sweep")
    report(f"ended after {changed} of {HELD}; {_changed(stack, shop)} in the end")
    assert ends.seen == [(name, 0)]
    assert leased == 0
    assert _changed(stack, shop) == HELD
    assert {log.delivery_id for log in check_logs(stack, [shop]) if log.status == "cancelled"} == set(held)


def _lines_of(stack: Stack, name: str, shop: Shop) -> list[dict[str, object]]:
    return [line for line in lines(stack, name) if line.get("endpoint") == shop.endpoint_id]


def _leased(stack: Stack, table: str, shop: Shop) -> int:
    """The number of leased rows in the endpoint's mail."""
    lease_end = "leased_until" if table == "deliveries" else "due_at"
    query = f"SELECT count(*) FROM {table} WHERE endpoint_id = %s AND {lease_end} > now()"
    return int(rows(stack, query, shop.endpoint_id)[0][0])


def _changed(stack: Stack, shop: Shop) -> int:
    return int(rows(stack, "SELECT sum(changed) FROM sweeps WHERE endpoint_id = %s", shop.endpoint_id)[0][0])


def _is_swept(stack: Stack, shop: Shop) -> bool:
    return bool(rows(stack, "SELECT FROM sweeps WHERE endpoint_id = %s AND due_at IS NOT NULL", shop.endpoint_id))


def _recorded(stack: Stack, shop: Shop) -> list[tuple[str, str, int, int]]:
    """Each delivery with its status, its count of attempts, and the number of logged ones."""
    query = """
        SELECT id, deliveries.status, attempts, (SELECT count(*) FROM attempts WHERE delivery_id = id)
        FROM deliveries WHERE endpoint_id = %s ORDER BY id
    """
    return rows(stack, query, shop.endpoint_id)


def _left(stack: Stack) -> list[dict[str, object]]:
    """What workers have left without an outcome: jobs and deliveries with a lease that had to end, and errors."""
    logged = (line for name in stack.processes.names for line in lines(stack, name))
    return [
        line
        for line in logged
        if (line["event"] == "mailbox.leases_ended" and line["table"] in ("jobs", "deliveries"))
        or line["level"] == "error"
    ]


def _stale(stack: Stack, shop: Shop) -> list[dict[str, object]]:
    return [
        line
        for line in lines(stack, "deliveries.1")
        if line["event"] == "delivery.attempt" and line["status"] == "stale" and line["endpoint"] == shop.endpoint_id
    ]

"""Retries: made in full and on time, whichever process dies or freezes and whichever bell is lost, early or doubled."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest
from dramatiq import Message

from tests.journeys.attempts import check_logs, unlogged
from tests.journeys.audit import audit, rows, settle
from tests.journeys.conftest import SETTINGS, STRICT_SETTINGS
from tests.journeys.faults import FailsFirst, empty_redis, kill, let_pass, nobody_at, redis_away, restart_postgres
from tests.journeys.load import Load
from tests.journeys.shops import Shop, open_shop, open_shops
from tests.journeys.waiting import wait_until
from tests.stack.receiver import Receiver
from tests.stack.stack import Stack

TIMEOUT_SECONDS = float(SETTINGS["WEBHOOK_TIMEOUT_SECONDS"])
DELAY = STRICT_SETTINGS["RETRY_SCHEDULE"].partition(",")[0]
POSTED = 10
# Without the scheduler a lost bell would be for ever. It takes about a second; a busy machine adds to that.
LATE_SECONDS = 10

Report = Callable[[object], None]


# What happens in the middle


def kill_deliveries(stack: Stack) -> None:
    kill(stack, "deliveries")


def kill_retries(stack: Stack) -> None:
    kill(stack, "retries")


def lose_redis_for_five_seconds(stack: Stack) -> None:
    with redis_away(stack):
        let_pass(5)


@pytest.mark.parametrize(
    "fault",
    [
        kill_deliveries,
        pytest.param(kill_retries, marks=[pytest.mark.several_processes, pytest.mark.nightly]),
        pytest.param(empty_redis, marks=pytest.mark.nightly),
        lose_redis_for_five_seconds,
        pytest.param(restart_postgres, marks=pytest.mark.nightly),
    ],
)
def test_every_retry_is_made_and_logged_whatever_happens_in_the_middle(
    fault: Callable[[Stack], None], stack: Stack, receiver: Receiver, report: Report
) -> None:
    # Few: what fails is sent to one by one.
    load = Load(open_shops(stack, receiver, 2), clients=1, pause_seconds=0.1)
    receiver.behaviour = FailsFirst(2, delay_seconds=0.05)
    with load:
        load.go_on(40)
        wait_until(lambda: _are_tried_again(stack, load), 20, "retries are under way")
        began = time.time()
        fault(stack)
        ended = time.time()
        load.go_on(20)

    figures = audit(stack, receiver, load)
    found = check_logs(stack, load.shops)
    repeated = unlogged(found, receiver)

    report(f"{figures}  attempts logged {sum(log.attempts for log in found)}, not logged {len(repeated)}")
    # Of three arrivals the first two fail; those that were not logged count for the receiver too.
    arrivals = [log.attempts for log in found]
    assert min(arrivals) >= (2 if repeated else 3)
    assert sum(arrivals) + len(repeated) == len([each for each in receiver.received if each.delivery_id])
    if fault is kill_deliveries:
        assert all(began - TIMEOUT_SECONDS <= each.at <= ended for each in repeated)
    else:
        assert repeated == []


def _are_tried_again(stack: Stack, load: Load) -> bool:
    workspaces = [shop.workspace_id for shop in load.shops]
    query = "SELECT count(*) FROM deliveries WHERE workspace_id = ANY(%s) AND status = 'pending' AND attempts = 1"
    return int(rows(stack, query, workspaces)[0][0]) > 10


# Waking. Each of these does something while retries wait, and ends when it has done it.


@contextmanager
def only_the_scheduler_wakes(stack: Stack, shop: Shop) -> Iterator[None]:
    with nobody_at(stack, "retries"):
        yield
        settle(stack, [shop])


@contextmanager
def a_process_that_wakes_is_frozen(stack: Stack, shop: Shop) -> Iterator[None]:
    stack.processes.freeze("retries.1")
    try:
        yield
        settle(stack, [shop])
    finally:
        stack.processes.thaw("retries.1")


@contextmanager
def the_bells_are_lost(stack: Stack, shop: Shop) -> Iterator[None]:
    """All that ring while the retries fall due."""
    yield
    ends = time.monotonic() + int(DELAY) + 1
    while time.monotonic() < ends:
        empty_redis(stack)


@contextmanager
def bells_ring_early_and_twice(stack: Stack, shop: Shop) -> Iterator[None]:
    yield
    for _ in range(5):
        _ring(stack, "deliveries", shop.endpoint_id)
        let_pass(0.1)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(only_the_scheduler_wakes, marks=pytest.mark.several_processes),
        pytest.param(a_process_that_wakes_is_frozen, marks=[pytest.mark.several_processes, pytest.mark.nightly]),
        the_bells_are_lost,
        pytest.param(bells_ring_early_and_twice, marks=pytest.mark.nightly),
    ],
)
def test_a_retry_is_made_once_and_on_time_though(
    change: Callable[[Stack, Shop], AbstractContextManager[None]], strict: Stack, receiver: Receiver, report: Report
) -> None:
    shop = open_shop(strict, receiver)
    receiver.behaviour = FailsFirst(1)
    due: dict[str, float] = {}

    def all_wait() -> bool:
        # Some may be made again before the last has failed.
        due.update(_waiting(strict, shop))
        return len(due) == POSTED

    with change(strict, shop):
        for number in range(POSTED):
            shop.caller().call("POST", "contacts", {"external_id": f"contact-{number}"})
            all_wait()
        wait_until(all_wait, 20, "every first attempt has failed")
    settle(strict, [shop])
    # For bells that come later than what they are about.
    let_pass(1)

    found = check_logs(strict, [shop])
    late = [log.began[1] - due[log.delivery_id] for log in found]
    report(f"the retry began {min(late):.2f} to {max(late):.2f} s after its time")
    assert [(log.status, log.attempts) for log in found] == [("delivered", 2)] * POSTED
    assert min(late) >= 0
    assert max(late) < LATE_SECONDS
    assert len(receiver.received) == 2 * POSTED


def _waiting(stack: Stack, shop: Shop) -> dict[str, float]:
    """When each delivery that waits for its second attempt is due."""
    query = """
        SELECT id, extract(epoch FROM next_attempt_at)::float FROM deliveries
        WHERE workspace_id = %s AND attempts = 1 AND next_attempt_at IS NOT NULL
    """
    return dict(rows(stack, query, shop.workspace_id))


def _ring(stack: Stack, queue: str, owner: str) -> None:
    broker = stack.broker.broker()
    broker.declare_queue(queue)
    broker.enqueue(Message(queue_name=queue, actor_name=queue, args=(owner,), kwargs={}, options={}))

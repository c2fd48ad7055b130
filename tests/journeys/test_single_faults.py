"""One kind of fault at a time under a steady load, to see which one it is if `test_faults` finds something."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from tests.journeys.audit import Figures, audit
from tests.journeys.faults import empty_redis, kill, let_pass, names, redis_away, redis_hanging, slow
from tests.journeys.load import Load
from tests.journeys.shops import open_shops
from tests.stack.receiver import Receiver
from tests.stack.stack import Stack

pytestmark = pytest.mark.nightly

SHOPS = 2
WINDOW = 32  # requests under way from one process to one endpoint
Report = Callable[[Figures], None]
Outage = Callable[[Stack], AbstractContextManager[None]]


@pytest.fixture
def load(stack: Stack, receiver: Receiver) -> Load:
    return Load(open_shops(stack, receiver, SHOPS))


@pytest.mark.parametrize("kind", ["writes", "web", "scheduler"])
def test_killing_a_type_of_process_loses_and_doubles_nothing(
    kind: str, stack: Stack, receiver: Receiver, load: Load, report: Report
) -> None:
    with load:
        for _ in range(3):
            load.go_on()
            kill(stack, kind)
        load.go_on()

    figures = audit(stack, receiver, load)

    report(figures)
    # Where deliveries run in the same process, what was under way is repeated.
    assert figures.duplicates <= 3 * len(senders(stack, kind)) * SHOPS * WINDOW


def senders(stack: Stack, kind: str) -> set[str]:
    """The processes of the type that make deliveries, too."""
    return {*names(stack, kind)} & {*names(stack, "deliveries")}


def test_killing_deliveries_loses_nothing_and_repeats_only_what_was_under_way(
    stack: Stack, receiver: Receiver, load: Load, report: Report
) -> None:
    receiver.behaviour = slow
    with load:
        for _ in range(3):
            load.go_on()
            kill(stack, "deliveries")
        load.go_on()

    figures = audit(stack, receiver, load)

    report(figures)
    assert figures.duplicates <= 3 * len(stack.processes.pids("deliveries")) * SHOPS * WINDOW


def test_killing_every_process_at_once_loses_nothing(
    stack: Stack, receiver: Receiver, load: Load, report: Report
) -> None:
    receiver.behaviour = slow
    with load:
        for _ in range(2):
            load.go_on()
            kill(stack, "web", "writes", "deliveries", "scheduler")
            stack.processes.wait_ready()  # on a busy machine, starting them all at once takes long
        load.go_on()

    figures = audit(stack, receiver, load)

    report(figures)
    assert figures.duplicates <= 2 * len(stack.processes.pids("deliveries")) * SHOPS * WINDOW


def test_emptying_redis_loses_and_doubles_nothing(stack: Stack, receiver: Receiver, load: Load, report: Report) -> None:
    with load:
        for _ in range(10):
            load.go_on(30)
            empty_redis(stack)
        load.go_on()

    figures = audit(stack, receiver, load)

    report(figures)
    assert figures.refused == 0
    assert figures.duplicates == 0


@pytest.mark.parametrize("without_redis", [redis_away, redis_hanging])
def test_without_redis_writes_are_accepted_quickly_and_run_when_it_is_back(
    without_redis: Outage, stack: Stack, receiver: Receiver, load: Load, report: Report
) -> None:
    with load:
        began = time.monotonic()
        load.go_on()
        usual, began = load.taken(since=began), time.monotonic()
        with without_redis(stack):
            let_pass(10)
            taken = load.taken(since=began)
        load.go_on()

    figures = audit(stack, receiver, load)

    report(figures)
    # Waiting for Redis every time would take half a second more, and for its return ten.
    assert statistics.median(taken) < statistics.median(usual) + 0.4
    assert max(taken) < max(usual) + 5
    assert figures.refused == 0
    assert figures.duplicates == 0


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_restarting_postgres_loses_and_doubles_nothing(
    end: str, stack: Stack, receiver: Receiver, load: Load, report: Report
) -> None:
    with load:
        for _ in range(2):
            load.go_on()
            getattr(stack.postgres, end)()
            stack.postgres.start()
        load.go_on()

    figures = audit(stack, receiver, load)

    report(figures)
    assert figures.duplicates == 0


def test_what_a_receiver_missed_while_it_was_down_arrives_when_it_is_up(
    stack: Stack, receiver: Receiver, load: Load, report: Report
) -> None:
    with load:
        load.go_on()
        receiver.stop()
        load.go_on(500)
        receiver.start()
        load.go_on()

    figures = audit(stack, receiver, load)

    report(figures)
    # Requests that had arrived but had no response yet when the connections were cut.
    assert figures.duplicates <= len(stack.processes.pids("deliveries")) * SHOPS * WINDOW

"""Faults under a steady load: every accepted write takes effect once, in order, and its event is received."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from contextlib import closing

import psycopg2

from tests.journeys.audit import Figures, audit, settle
from tests.journeys.faults import (
    empty_redis,
    kill,
    let_pass,
    redis_away,
    redis_hanging,
    restart_postgres,
    slow,
)
from tests.journeys.load import Load
from tests.journeys.shops import open_shop, open_shops
from tests.journeys.waiting import wait_until
from tests.stack.receiver import Receiver
from tests.stack.stack import Stack

SHOPS = 2
WINDOW = 32  # requests under way from one process to one endpoint


def test_all_faults_one_after_another_lose_nothing_and_repeat_only_what_was_under_way(
    stack: Stack, receiver: Receiver, report: Callable[[Figures], None]
) -> None:
    load = Load(open_shops(stack, receiver, SHOPS))
    receiver.behaviour = slow
    with load:
        for kind in ("writes", "web", "scheduler", "deliveries"):
            load.go_on()
            kill(stack, kind)
        load.go_on()
        kill(stack, "web", "writes", "deliveries", "scheduler")
        stack.processes.wait_ready()  # on a busy machine, starting them all at once takes long
        load.go_on()
        empty_redis(stack)
        for without_redis in (redis_away, redis_hanging):
            began = time.monotonic()
            load.go_on()
            usual, refused, began = load.taken(since=began), len(load.refused), time.monotonic()
            with without_redis(stack):
                let_pass(5)
                taken = load.taken(since=began)
            # Waiting for Redis every time would take half a second more, and for its return five.
            assert statistics.median(taken) < statistics.median(usual) + 0.4
            assert max(taken) < max(usual) + 5
            assert len(load.refused) == refused
        load.go_on()
        restart_postgres(stack)
        load.go_on()
        stack.postgres.kill()
        stack.postgres.start()
        load.go_on()
        receiver.stop()
        load.go_on(200)
        receiver.start()
        load.go_on()

    figures = audit(stack, receiver, load)

    report(figures)
    # The processes that deliver were killed twice, and the receiver cut their requests off once.
    assert figures.duplicates <= 3 * len(stack.processes.pids("deliveries")) * SHOPS * WINDOW


def answers(url: str) -> bool:
    try:
        with closing(psycopg2.connect(url)) as connection:
            connection.cursor().execute("SELECT 1")
    except psycopg2.OperationalError:
        return False
    return True


def test_a_restart_of_postgres_in_a_quiet_moment_ends_no_work_for_good(stack: Stack, receiver: Receiver) -> None:
    """Every worker has a connection that was closed while it was idle."""
    shop = open_shop(stack, receiver)
    for number in range(4):
        shop.caller().apply("POST", "contacts", {"external_id": f"contact-{number}"})
    settle(stack, [shop])

    stack.postgres.restart()
    # Asked directly: the processes must keep their stale connections. A pooler reconnects after a second.
    wait_until(lambda: answers(stack.environment["DATABASE_URL"]), 20, "the database answers")
    for number in range(40):
        shop.caller().apply("POST", "contacts", {"external_id": f"contact-{number}", "first_name": "Ada"})

    settle(stack, [shop], seconds=20)
    assert len(receiver.received) == 44

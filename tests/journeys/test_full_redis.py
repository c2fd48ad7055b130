"""A Redis without room: whether it refuses writes or evicts keys, nothing is lost, and no caller notices."""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest
import redis

from tests.journeys.audit import Figures, audit
from tests.journeys.faults import let_pass
from tests.journeys.load import Load
from tests.journeys.shops import open_shops
from tests.journeys.waiting import wait_until
from tests.stack.receiver import Receiver
from tests.stack.stack import Stack

Report = Callable[[Figures], None]


@pytest.fixture
def load(stack: Stack, receiver: Receiver) -> Iterator[Load]:
    # Slow enough that a busy machine sends what has waited before its lease ends.
    yield Load(open_shops(stack, receiver, 2), pause_seconds=0.1)
    stack.redis.limit(0)


@contextmanager
def crowded(stack: Stack) -> Iterator[Counter[str]]:
    """Something else fills the same Redis, which evicts other keys; counts those by the word they begin with."""
    client, evicted, is_over = redis.Redis.from_url(stack.redis.url), Counter[str](), threading.Event()
    stack.redis.limit(client.info("memory")["used_memory"] + 400_000, "allkeys-lru")
    client.config_set("notify-keyspace-events", "Ee")

    def crowd() -> None:
        with client.pubsub(ignore_subscribe_messages=True) as told:
            told.subscribe("__keyevent@0__:evicted")
            for number in itertools.count():
                with suppress(redis.OutOfMemoryError):  # there is nothing left to evict
                    client.set(f"crowd:{number % 10}", b"x" * 100_000, ex=60)
                while message := told.get_message():
                    evicted[message["data"].decode().partition(":")[0]] += 1
                if is_over.wait(0.005):
                    return

    thread = threading.Thread(target=crowd)
    thread.start()
    try:
        yield evicted
    finally:
        is_over.set()
        thread.join()
        client.config_set("notify-keyspace-events", "")


def test_a_full_redis_costs_no_write_and_all_run_when_it_has_room(
    stack: Stack, receiver: Receiver, load: Load, report: Report
) -> None:
    with load:
        load.go_on()
        stack.redis.limit(1)
        let_pass(8)
        load.go_on()
        stack.redis.limit(0)
        load.go_on()

    figures = audit(stack, receiver, load)

    report(figures)
    assert figures.refused == 0
    assert figures.duplicates == 0


@pytest.mark.nightly
def test_a_redis_that_evicts_keys_loses_and_doubles_nothing(
    stack: Stack, receiver: Receiver, load: Load, report: Report
) -> None:
    with crowded(stack) as evicted:
        with load:
            load.go_on(300)
            wait_until(lambda: min(evicted["bell"], evicted["bells-taken-up"]) > 5, 30, "flags of bells are evicted")
        figures = audit(stack, receiver, load)

    report(figures)
    assert evicted["dramatiq"] > 0 or stack.broker is not stack.redis
    assert figures.refused == 0
    assert figures.duplicates == 0

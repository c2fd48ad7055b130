"""Consumers that wait inside Redis."""

from __future__ import annotations

import time

import pytest
import redis
from dramatiq import Message

from app.config import settings
from workers.waiting import WaitingBroker, WaitingConsumer

pytestmark = pytest.mark.usefixtures("empty")

LONG_MS = 60_000


@pytest.fixture
def broker() -> WaitingBroker:
    return WaitingBroker(client=redis.Redis.from_url(settings().redis_url), middleware=[])


def test_one_that_holds_what_is_delayed_looks_again_long_before_its_longest_wait(broker: WaitingBroker) -> None:
    message: Message[None] = Message(queue_name="later", actor_name="later", args=(), kwargs={}, options={})
    broker.declare_queue("later")
    broker.enqueue(message, delay=60_000)
    consumer = WaitingConsumer(broker, "later.DQ", prefetch=10, timeout=LONG_MS)
    assert next(consumer)

    began = time.monotonic()
    assert next(consumer) is None

    assert time.monotonic() - began < LONG_MS / 2000


def test_one_that_holds_nothing_waits_for_its_longest(broker: WaitingBroker) -> None:
    consumer = WaitingConsumer(broker, "later.DQ", prefetch=10, timeout=300)

    began = time.monotonic()
    assert next(consumer) is None

    assert time.monotonic() - began > 0.29  # of its clock, which counts milliseconds

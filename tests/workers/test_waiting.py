"""Consumers that wait inside Redis."""

from __future__ import annotations

import time

import pytest
import redis

from app.config import settings
from workers.waiting import WaitingBroker, WaitingConsumer

pytestmark = pytest.mark.usefixtures("empty")


@pytest.fixture
def broker() -> WaitingBroker:
    return WaitingBroker(client=redis.Redis.from_url(settings().redis_url), middleware=[])


def test_one_that_finds_nothing_waits_for_its_longest(broker: WaitingBroker) -> None:
    consumer = WaitingConsumer(broker, "writes", prefetch=10, timeout=300)

    began = time.monotonic()
    assert next(consumer) is None

    assert time.monotonic() - began > 0.29  # of its clock, which counts milliseconds

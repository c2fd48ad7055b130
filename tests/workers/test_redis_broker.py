"""Consumers that wait inside Redis."""

from __future__ import annotations

import threading
import time

import pytest
import redis
from dramatiq.errors import ConnectionClosed

from app import bells
from app.bells import Turn
from app.config import settings
from tests.conftest import Servers
from workers.redis_broker import BlockingBroker, BlockingConsumer

pytestmark = pytest.mark.usefixtures("empty")


@pytest.fixture
def broker() -> BlockingBroker:
    return BlockingBroker(client=redis.Redis.from_url(settings().redis_url), middleware=[])


def test_one_that_finds_nothing_waits_for_its_longest(broker: BlockingBroker) -> None:
    consumer = BlockingConsumer(broker, "writes", prefetch=10, timeout=300)

    began = time.monotonic()
    assert next(consumer) is None

    assert time.monotonic() - began > 0.29  # of its clock, which counts milliseconds


def test_the_newest_bell_is_heard_beside_a_backlog_and_the_oldest_are_not_forgotten(broker: BlockingBroker) -> None:
    for number in range(6):
        bells.ring("writes", f"ws_{number}")
        bells.flush(20)
    consumer = BlockingConsumer(broker, "writes", prefetch=2, timeout=300)

    heard = [take(consumer) for _ in range(6)]

    assert [owner for owner, _ in heard] == ["ws_5", "ws_0", "ws_4", "ws_1", "ws_3", "ws_2"]
    assert [out_of_turn for _, out_of_turn in heard] == [True, False] * 3


def test_one_that_is_always_full_hears_the_newest_bell_too(broker: BlockingBroker) -> None:
    for number in range(5):
        bells.ring("writes", f"ws_{number}")
        bells.flush(20)
    consumer = BlockingConsumer(broker, "writes", prefetch=2, timeout=20_000)
    message, heard = next(consumer), []

    for _ in range(4):
        ending = threading.Timer(0.05, consumer.ack, [message])
        ending.start()
        message = next(consumer)
        ending.join()
        assert message is not None
        heard.append(message.args[0])

    assert heard == ["ws_0", "ws_3", "ws_1", "ws_2"]


def test_bells_for_overdue_mail_take_no_place_among_new_ones(
    broker: BlockingBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ws_old", "ws_new"):
        bells.ring("writes", name)
        bells.flush(20)
    monkeypatch.setattr(bells._ringer(), "usual_turn", Turn.LATE)
    for number in range(3):
        bells.ring("writes", f"ws_{number}")
        bells.flush(20)
    consumer = BlockingConsumer(broker, "writes", prefetch=2, timeout=300)

    assert take(consumer) == ("ws_new", True)
    # They say nothing about bells that rang before.
    assert [take(consumer)[1] for _ in range(4)] == [False, True, True, True]


def test_mailboxes_that_are_never_emptied_hold_up_no_new_bell_beside_a_backlog(broker: BlockingBroker) -> None:
    for number in range(100):
        bells.ring("writes", f"ws_{number}")
        bells.flush(20)
    bells.ring("writes", "ws_new")
    bells.flush(20)
    for number in range(4):
        bells.ring("writes", f"ws_busy_{number}", Turn.AGAIN)
        bells.flush(20)
    consumer, heard, turns = BlockingConsumer(broker, "writes", prefetch=2, timeout=300), "", 0

    while heard != "ws_new":
        heard, turns = take(consumer)[0], turns + 1
        bells.hear("writes", [heard])
        if "busy" in heard:
            bells.ring("writes", heard, Turn.AGAIN)
            bells.flush(20)

    assert turns < 50


def test_a_full_redis_is_like_one_that_is_away_and_loses_no_message(broker: BlockingBroker, servers: Servers) -> None:
    bells.ring("writes", "ws_1")
    bells.flush(20)
    consumer = BlockingConsumer(broker, "writes", prefetch=4, timeout=300)
    message = next(consumer)
    assert message is not None
    servers.redis.limit(1)
    try:
        with pytest.raises(ConnectionClosed):
            next(consumer)
        for refused in (consumer.ack, consumer.nack, lambda message: consumer.requeue([message])):
            with pytest.raises(ConnectionClosed):
                refused(message)
    finally:
        servers.redis.limit(0)

    consumer.requeue([message])

    assert take(consumer)[0] == "ws_1"


def take(consumer: BlockingConsumer) -> tuple[str, bool]:
    message = next(consumer)
    assert message is not None
    consumer.ack(message)
    return message.args[0], bells.OUT_OF_TURN in message.options

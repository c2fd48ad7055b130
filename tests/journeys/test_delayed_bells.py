"""A worker that holds messages while Redis hangs hears bells again, and goes on."""

from __future__ import annotations

import time

from dramatiq import Message
from dramatiq.common import dq_name

from tests.journeys.audit import settle
from tests.journeys.conftest import Ends
from tests.journeys.faults import redis_hanging
from tests.journeys.shops import open_shop
from tests.journeys.waiting import wait_until
from tests.stack.receiver import Receiver
from tests.stack.stack import Stack


def test_a_worker_that_cannot_give_back_what_it_holds_hears_again(stack: Stack, receiver: Receiver, ends: Ends) -> None:
    """Dramatiq's consumers of delayed messages die of it if Redis refuses to take them back with any other error."""
    shop = open_shop(stack, receiver)
    ends.seen.clear()
    _ring_in_a_minute(stack, "writes", shop.workspace_id)
    with redis_hanging(stack):
        # A consumer's call to Redis fails after 5 seconds (workers/broker.py). Its line in the log may be left out,
        # because a process logs only one line a minute about Redis.
        time.sleep(15)

    shop.caller().apply("POST", "contacts", {"external_id": "ada"})
    settle(stack, [shop])
    assert ends.seen == []


def _ring_in_a_minute(stack: Stack, queue: str, workspace_id: str) -> None:
    """Sends a delayed bell and waits until a consumer has fetched it."""
    broker = stack.broker.broker()
    broker.declare_queue(queue)
    message = Message(queue_name=queue, actor_name=queue, args=(workspace_id,), kwargs={}, options={})
    broker.enqueue(message, delay=60_000)
    wait_until(lambda: stack.broker.waiting(dq_name(queue)) == 0, 10, "the delayed bell is fetched")

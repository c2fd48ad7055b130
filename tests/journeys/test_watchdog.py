"""A worker that can no longer hear bells exits, and its supervisor starts another."""

from __future__ import annotations

from dramatiq import Message
from dramatiq.common import dq_name

from tests.journeys.audit import settle
from tests.journeys.conftest import Ends
from tests.journeys.faults import names, redis_hanging
from tests.journeys.shops import open_shop
from tests.journeys.waiting import wait_until
from tests.stack.receiver import Receiver
from tests.stack.stack import Stack

EXIT_CODE = 70


def test_a_worker_whose_consumer_died_ends_and_is_replaced(stack: Stack, receiver: Receiver, ends: Ends) -> None:
    """Dramatiq's delay-queue consumer dies if it holds a delayed message while Redis hangs."""
    shop = open_shop(stack, receiver)
    ends.seen.clear()
    _ring_in_a_minute(stack, "writes", shop.workspace_id)
    with redis_hanging(stack):
        wait_until(lambda: ends.seen, 30, "a deaf worker ends")

    stack.processes.wait_ready()
    [(name, code)] = ends.seen
    assert name in names(stack, "writes")
    assert code == EXIT_CODE
    shop.caller().apply("POST", "contacts", {"external_id": "ada"})
    settle(stack, [shop])


def _ring_in_a_minute(stack: Stack, queue: str, workspace_id: str) -> None:
    """Sends a delayed bell and waits until a consumer has fetched it."""
    broker = stack.broker.broker()
    broker.declare_queue(queue)
    message = Message(queue_name=queue, actor_name=queue, args=(workspace_id,), kwargs={}, options={})
    broker.enqueue(message, delay=60_000)
    wait_until(lambda: stack.broker.waiting(dq_name(queue)) == 0, 10, "the delayed bell is fetched")

"""Endpoints that hang have processes of their own until they have recovered, and a good one sees nothing of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime

from app.domain.deliveries.lanes import SLOW_SECONDS
from tests.journeys.attempts import check_logs
from tests.journeys.audit import rows, settle
from tests.journeys.faults import let_pass, names
from tests.journeys.load import Load
from tests.journeys.logs import lines
from tests.journeys.shops import Shop, open_shop, open_shops
from tests.journeys.waiting import wait_until
from tests.stack.receiver import Answer, Received, Receiver
from tests.stack.stack import Stack

HANGING, POSTED = 3, 24
HANGS = Answer(delay_seconds=3600)


def test_endpoints_that_hang_delay_no_other_and_come_back_when_they_have_recovered(
    stack: Stack, receiver: Receiver, report: Callable[[object], None]
) -> None:
    good, hanging = open_shop(stack, receiver), open_shops(stack, receiver, HANGING)
    receiver.answers |= {shop.hook: HANGS for shop in hanging}
    alone = _seconds_to_the_good(stack, good, receiver)

    with Load(hanging, clients=1, pause_seconds=0, most=POSTED) as load:
        load.finish()
    beside = _seconds_to_the_good(stack, good, receiver)
    wait_until(lambda: all(_is_slow(stack, shop) for shop in hanging), 30, "those that hang are in the slow lane")
    beside += _seconds_to_the_good(stack, good, receiver)
    wait_until(
        lambda: _last_sender(stack, hanging[0]) in names(stack, "slow-deliveries"), 30, "the slow lane serves them"
    )
    receiver.answers.clear()
    settle(stack, hanging, seconds=90)
    # At once if they answer quickly, and on a busy machine a minute after their last slow answer.
    wait_until(lambda: not any(_is_slow(stack, shop) for shop in hanging), SLOW_SECONDS + 20, "they have come back")

    for shop in hanging:
        shop.caller().apply("POST", "contacts", {"external_id": "after"})
    settle(stack, hanging)
    report(f"to the good one in {max(alone):.2f} s at most when alone, {max(beside):.2f} s beside {HANGING} that hang")
    # An attempt that hangs takes five.
    assert max(beside) < max(alone) + 4
    wait_until(
        lambda: all(_last_sender(stack, shop) in names(stack, "deliveries") for shop in hanging),
        20,
        "the fast lane serves them",
    )
    assert {log.status for log in check_logs(stack, [good, *hanging])} == {"delivered"}


def _seconds_to_the_good(stack: Stack, good: Shop, receiver: Receiver) -> list[float]:
    """How long the events of twenty single writes took from their making to the receiver."""
    begins = len(receiver.received)
    for number in range(20):
        good.caller().apply("POST", "contacts", {"external_id": f"contact-{begins}-{number}"})
        let_pass(0.1)
    settle(stack, [good])
    return [_seconds(each) for each in receiver.received[begins:] if each.path == good.hook]


def _seconds(received: Received) -> float:
    created_at = datetime.fromisoformat(json.loads(received.body)["created_at"])
    return received.at - created_at.timestamp()


def _is_slow(stack: Stack, shop: Shop) -> bool:
    return rows(stack, "SELECT coalesce(slow_until > now(), false) FROM endpoints WHERE id = %s", shop.endpoint_id) == [
        (True,)
    ]


def _last_sender(stack: Stack, shop: Shop) -> str:
    """The process that made the last attempt at the shop's endpoint; "" if there was none."""
    ends = [
        (line["timestamp"], name)
        for name in names(stack, "deliveries", "slow-deliveries")
        for line in lines(stack, name)
        if line["event"] == "delivery.attempt" and line["endpoint"] == shop.endpoint_id
    ]
    return max(ends, default=("", ""))[1]

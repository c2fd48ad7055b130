"""Nobody at the `writes` queue for a while: bells do not pile up, and all is well when workers are back."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from app.bells import RINGING_SECONDS
from tests.journeys.audit import settle
from tests.journeys.faults import nobody_at
from tests.journeys.shops import open_shops
from tests.journeys.waiting import wait_until
from tests.stack.receiver import Receiver
from tests.stack.stack import Stack

SHOPS = 12
# In which every bell would have been lost several times, if it could be while it waits in its queue.
AWAY_SECONDS = 3 * RINGING_SECONDS


@pytest.mark.nightly
def test_bells_do_not_pile_up_while_workers_are_away(
    stack: Stack, receiver: Receiver, report: Callable[[object], None]
) -> None:
    shops = open_shops(stack, receiver, SHOPS)
    most = 0

    def has_been_away() -> bool:
        nonlocal most
        most = max(most, stack.broker.waiting("writes"))
        return time.monotonic() > ends

    with nobody_at(stack, "writes"):
        for number, shop in enumerate(shops):
            shop.caller().call("POST", "contacts", {"external_id": f"contact-{number}"})
        ends = time.monotonic() + AWAY_SECONDS
        wait_until(has_been_away, AWAY_SECONDS + 10)

    began = time.monotonic()
    shops[0].caller().apply("POST", "contacts", {"external_id": "after"})
    report(f"{most} messages at most, for {SHOPS} mailboxes; a write took {time.monotonic() - began:.2f} s then")
    settle(stack, shops)
    assert most <= SHOPS

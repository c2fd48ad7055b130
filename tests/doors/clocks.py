"""The clock of the machine that runs the processes jumps hours ahead and back, under load; PostgreSQL's goes on.

Needs a C compiler.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

from app.lib import clock as clocks
from app.lib import ids
from tests.doors.services import service
from tests.doors.victims import victim
from tests.journeys.audit import rows, settle
from tests.journeys.runs import publish
from tests.journeys.shops import Shop, open_shop
from tests.journeys.waiting import wait_until
from tests.stack.clocks import Clock
from tests.stack.receiver import Receiver
from tests.stack.stack import Stack

SECONDS_EACH = 10.0
HOUR = 3600
# How far ahead of PostgreSQL's clock it is.
JUMPS = (0, 3 * HOUR, -2 * HOUR, 400 * 24 * HOUR, 0)
STEPS = [
    {"id": "first", "kind": "add_tag", "tag": "seen"},
    {"id": "pause", "kind": "wait", "seconds": 1},
    {"id": "second", "kind": "add_tag", "tag": "waited"},
]


def measure(tell: Callable[[str], None]) -> None:
    """The acts: a write is applied; a run that waits for a second is completed."""
    with TemporaryDirectory(prefix="bellhop-clock-") as directory:
        clock = Clock(Path(directory) / "clock")
        with (
            service(settings=clock.environment) as stack,
            Receiver(stack.certificates.ca_file.parent) as receiver,
        ):
            _suffer(stack, receiver, clock, tell)


def _suffer(stack: Stack, receiver: Receiver, clock: Clock, tell: Callable[[str], None]) -> None:
    shop, owner = open_shop(stack, receiver), open_shop(stack, receiver, "Runs")
    automation = publish(owner, STEPS)
    contact = owner.caller().apply("POST", "contacts", {"external_id": "ada"}).data["id"]
    for jump in JUMPS:
        clock.move(jump - clock.seconds)
        with (
            victim(partial(_write, shop), every_seconds=0.1) as writes,
            victim(partial(_run, owner, automation, contact), every_seconds=0.1) as runs,
        ):
            time.sleep(SECONDS_EACH)
        tell(f"the clock {jump // HOUR:+} h ahead: a write {writes}")
        tell(f"    a run that waits for a second: {runs}")
        writes.check()
        runs.check(3.0)
    settle(stack, [shop, owner])
    [(is_ahead,)] = rows(stack, "SELECT max(id) > %s FROM jobs", ids.bound("job", clocks.now() + timedelta(days=300)))
    assert is_ahead, "the processes did not see the clock jump"
    [(undelivered,)] = rows(stack, "SELECT count(*) FROM deliveries WHERE status <> 'delivered'")
    assert undelivered == 0, f"{undelivered} deliveries did not arrive"


def _write(shop: Shop) -> None:
    shop.caller().apply("POST", "contacts", {"external_id": uuid4().hex})


def _run(owner: Shop, automation: str, contact: str) -> None:
    caller = owner.caller()
    run = caller.apply("POST", f"automations/{automation}/start", {"contact_id": contact}).data["id"]
    wait_until(lambda: caller.get(f"runs/{run}")["status"] == "completed", 30, "the run is completed")

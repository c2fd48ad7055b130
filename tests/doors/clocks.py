"""The clock of the machine that runs the processes jumps hours ahead and back, under load; PostgreSQL's goes on.

Needs libfaketime: `pip install libfaketime` anywhere, and LIBFAKETIME=<the path of its libfaketime.so.1>.
"""

from __future__ import annotations

import os
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
from tests.stack.receiver import Receiver
from tests.stack.stack import Stack

SECONDS_EACH = 10.0
# In libfaketime's notation.
JUMPS = ("+0", "+3h", "-2h", "+400d", "+0")
STEPS = [
    {"id": "first", "kind": "add_tag", "tag": "seen"},
    {"id": "pause", "kind": "wait", "seconds": 1},
    {"id": "second", "kind": "add_tag", "tag": "waited"},
]


def measure(tell: Callable[[str], None]) -> None:
    """The acts: a write is applied; a run that waits for a second is completed."""
    library = os.environ.get("LIBFAKETIME", "")
    assert Path(library).is_file(), "LIBFAKETIME does not name libfaketime.so.1"
    with TemporaryDirectory(prefix="bellhop-clock-") as directory:
        clock = Path(directory) / "clock"
        clock.write_text(JUMPS[0])
        faked = {
            "LD_PRELOAD": library,
            "FAKETIME_TIMESTAMP_FILE": str(clock),
            "FAKETIME_CACHE_DURATION": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }
        with service(settings=faked) as stack, Receiver(stack.certificates.ca_file.parent) as receiver:
            _suffer(stack, receiver, clock, tell)


def _suffer(stack: Stack, receiver: Receiver, clock: Path, tell: Callable[[str], None]) -> None:
    shop, owner = open_shop(stack, receiver), open_shop(stack, receiver, "Runs")
    automation = publish(owner, STEPS)
    contact = owner.caller().apply("POST", "contacts", {"external_id": "ada"}).data["id"]
    for jump in JUMPS:
        clock.write_text(jump)
        time.sleep(2)  # by then all processes have seen it
        with (
            victim(partial(_write, shop), every_seconds=0.1) as writes,
            victim(partial(_run, owner, automation, contact), every_seconds=0.1) as runs,
        ):
            time.sleep(SECONDS_EACH)
        tell(f"the clock at {jump}: a write {writes}")
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

"""Sixty, then two hundred requests of one workspace wait behind its own import: reads of another workspace."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from tests.doors.services import Tenant, service, tenant
from tests.doors.victims import attacking, victim
from tests.journeys.shops import NoAnswer

Tell = Callable[[str], None]
LINES, SECONDS = 10_000, 8


def measure(tell: Tell) -> None:
    for number in (60, 200):
        with service({"web": 1, "writes": 1, "scheduler": 1}, {"RATE_LIMIT": "0"}) as stack:
            attacker, other = tenant(stack, "Attacker"), tenant(stack, "Victim").caller()
            lines = b"\n".join(json.dumps({"external_id": str(line)}).encode() for line in range(LINES))
            for _ in range(3):
                attacker.caller().call("POST", "contacts/import", lines, {"Content-Type": "application/jsonl"})
            statuses = Counter[int]()
            with (
                attacking([partial(wait, attacker, statuses)] * number),
                victim(partial(other.get, "contacts")) as felt,
            ):
                time.sleep(SECONDS)
            tell(f"{number} requests that wait: {dict(statuses)}; reads of another workspace: {felt}")
            felt.check()


def wait(attacker: Tenant, statuses: Counter[int], is_over: threading.Event) -> None:
    """Writes and waits for it, again and again."""
    caller = attacker.caller()
    while not is_over.is_set():
        with suppress(NoAnswer):
            statuses[caller.call("POST", "contacts", {"external_id": "x"}, {"Prefer": "wait=5"}).status] += 1
        is_over.wait(0.5)

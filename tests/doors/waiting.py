"""Sixty, then two hundred requests of one workspace wait behind its own import: reads of another workspace."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

from tests.doors.services import Tenant, service, tenant
from tests.doors.victims import victim
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
            is_over, statuses = threading.Event(), Counter[int]()
            waiting = [threading.Thread(target=wait, args=(attacker, is_over, statuses)) for _ in range(number)]
            for thread in waiting:
                thread.start()
            with victim(lambda: other.get("contacts")) as felt:
                time.sleep(SECONDS)
            is_over.set()
            for thread in waiting:
                thread.join()
            tell(f"{number} requests that wait: {dict(statuses)}; reads of another workspace: {felt}")
            felt.check()


def wait(attacker: Tenant, is_over: threading.Event, statuses: Counter[int]) -> None:
    """Writes and waits for it, again and again."""
    caller = attacker.caller()
    while not is_over.is_set():
        with suppress(NoAnswer):
            statuses[caller.call("POST", "contacts", {"external_id": "x"}, {"Prefer": "wait=5"}).status] += 1
        is_over.wait(0.5)

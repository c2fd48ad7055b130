"""Sixty, then two hundred connections of one token read its largest lists as fast as they can: another's reads."""

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
from tests.journeys.audit import rows
from tests.journeys.shops import NoAnswer
from tests.journeys.waiting import wait_until

Tell = Callable[[str], None]
CONTACTS, SECONDS = 2_000, 8
PAGE = "contacts?limit=100"


def measure(tell: Tell) -> None:
    for number in (60, 200):
        # As a stranger to the defaults would have it: the limit of requests a minute is on.
        with service({"web": 1, "writes": 1, "scheduler": 1}) as stack:
            attacker, other = tenant(stack, "Attacker"), tenant(stack, "Victim").caller()
            lines = b"\n".join(json.dumps({"external_id": str(line)}).encode() for line in range(CONTACTS))
            attacker.caller().call("POST", "contacts/import", lines, {"Content-Type": "application/jsonl"})
            # Not through the API, whose limit this might reach.
            wait_until(lambda stack=stack: len(rows(stack, _SOME)) == 100, 120, "a page of contacts is there")
            statuses = Counter[int]()
            with (
                attacking([partial(read, attacker, statuses)] * number),
                victim(partial(other.get, "contacts")) as felt,
            ):
                time.sleep(SECONDS)
            tell(f"{number} connections of one token: {dict(statuses)}; reads of another workspace: {felt}")
            felt.check()


def read(attacker: Tenant, statuses: Counter[int], is_over: threading.Event) -> None:
    """Reads a hundred contacts, again and again."""
    caller = attacker.caller()
    while not is_over.is_set():
        with suppress(NoAnswer):
            statuses[caller.call("GET", PAGE).status] += 1


_SOME = "SELECT 1 FROM contacts LIMIT 100"

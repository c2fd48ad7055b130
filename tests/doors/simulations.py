"""Forty connections of two workspaces simulate as many steps of templates as they may: reads of another workspace."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from tests.doors.services import Tenant, service, tenant
from tests.doors.templates import LOOP
from tests.doors.victims import victim
from tests.journeys.shops import NoAnswer

Tell = Callable[[str], None]
ATTACKERS, CONNECTIONS, SECONDS = 2, 20, 10
# The templates of each step take 72,000 steps together.
CALL = {"kind": "http_request", "method": "POST", "address": "https://shop.example", "body": [LOOP] * 4}
STEPS = [{**CALL, "id": f"call{number}"} for number in range(8)]


def measure(tell: Tell) -> None:
    with service({"web": 1, "writes": 1, "scheduler": 1}, {"RATE_LIMIT": "0"}) as stack:
        attackers, other = [tenant(stack, f"Attacker {n}") for n in range(ATTACKERS)], tenant(stack, "Victim").caller()
        is_over, outcomes = threading.Event(), Counter[str]()
        attacking = [
            threading.Thread(target=simulate, args=(attacker, automation_id, is_over, outcomes))
            for attacker in attackers
            for automation_id in [drafted(attacker)]
            for _ in range(CONNECTIONS)
        ]
        for thread in attacking:
            thread.start()
        with victim(partial(other.get, "contacts")) as felt:
            time.sleep(SECONDS)
        is_over.set()
        for thread in attacking:
            thread.join()
        tell(f"{len(attacking)} connections simulate for {SECONDS} s: {dict(outcomes)}; reads of another: {felt}")
        felt.check()


def drafted(owner: Tenant) -> str:
    """An automation with these steps."""
    made = owner.caller().apply("POST", "automations", {"name": "Runs", "definition": {"steps": STEPS}})
    return str(made.data["id"])


def simulate(attacker: Tenant, automation_id: str, is_over: threading.Event, outcomes: Counter[str]) -> None:
    """Simulates again and again, and waits for a tenth of a second when it may not."""
    caller = attacker.caller()
    while not is_over.is_set():
        with suppress(NoAnswer):
            answer = caller.call("POST", f"automations/{automation_id}/simulate", {})
            outcomes[answer.data["status"] if answer.status == 200 else str(answer.status)] += 1
            is_over.wait(0.1 if answer.status == 429 else 0)

"""Forty connections of two workspaces simulate runs, and send definitions, that compute for long: another's reads."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from tests.doors.services import Tenant, service, tenant
from tests.doors.templates import CALL, LOOP
from tests.doors.victims import attacking, victim
from tests.journeys.shops import NoAnswer

Tell = Callable[[str], None]
ATTACKERS, CONNECTIONS, SECONDS = 2, 20, 10
# The templates of each step take 72,000 steps together.
HEAVY = [{**CALL, "id": f"call{number}", "body": [LOOP] * 4} for number in range(8)]
SLOW_TO_READ = "{{a}}" * 750
# The largest that is checked beside others, and about the largest that there can be.
SMALL, LARGE = ([{**CALL, "body": [SLOW_TO_READ] * number}] for number in (1, 66))


def measure(tell: Tell) -> None:
    with service({"web": 1, "writes": 1, "scheduler": 1}, {"RATE_LIMIT": "0"}) as stack:
        attackers, other = [tenant(stack, f"Attacker {n}") for n in range(ATTACKERS)], tenant(stack, "Victim").caller()
        drafts = [attacker.caller().apply("POST", "automations", draft(HEAVY)).data["id"] for attacker in attackers]
        attacks: Mapping[str, list[tuple[str, Any]]] = {
            "simulate runs": [(f"automations/{automation_id}/simulate", {}) for automation_id in drafts],
            "send large definitions": [("automations", draft(LARGE))] * ATTACKERS,
            "send small definitions": [("automations", draft(SMALL))] * ATTACKERS,
        }
        for name, calls in attacks.items():
            statuses = Counter[int]()
            acts = [
                partial(call, attacker, path, body, statuses)
                for attacker, (path, body) in zip(attackers, calls, strict=True)
                for _ in range(CONNECTIONS)
            ]
            with attacking(acts), victim(partial(other.get, "contacts")) as felt:
                time.sleep(SECONDS)
            tell(f"{ATTACKERS * CONNECTIONS} connections {name}: {dict(statuses)}; reads of another: {felt}")
            felt.check()


def draft(steps: list[dict[str, Any]]) -> Mapping[str, Any]:
    return {"name": "Runs", "definition": {"steps": steps}}


def call(attacker: Tenant, path: str, body: Any, statuses: Counter[int], is_over: threading.Event) -> None:
    """Calls again and again, and waits for a tenth of a second when it may not."""
    caller = attacker.caller()
    while not is_over.is_set():
        with suppress(NoAnswer):
            status = caller.call("POST", path, body).status
            statuses[status] += 1
            is_over.wait(0.1 if status == 429 else 0)

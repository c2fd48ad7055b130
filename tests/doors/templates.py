"""A workspace starts twenty runs that render a thousand templates each: runs of another workspace."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from tests.doors.services import Tenant, service, tenant
from tests.doors.victims import victim
from tests.journeys.audit import rows
from tests.journeys.waiting import wait_until
from tests.stack.stack import Stack

Tell = Callable[[str], None]
PROCESSES = {"web": 1, "writes": 1, "automations": 1, "retries": 1, "scheduler": 1}
LOOP = "{% for i in (1..1500) %}{% assign x = contact.email | upcase | size %}{% endfor %}{{ x }}"
HOSTILE = {
    **{"id": "call", "kind": "http_request", "method": "POST", "address": "https://shop.example/hooks"},
    "body": [LOOP] * 1_000,
}
HEAVY = [{"id": f"s{number}", "kind": "set_field", "field": "first_name", "value": LOOP} for number in range(6)]
ATTACKS = {"20 runs with 1,000 templates in one step": ([HOSTILE], 20), "300 runs of six heavy steps": (HEAVY, 300)}
SECONDS = 15


def measure(tell: Tell) -> None:
    for name, (steps, number) in ATTACKS.items():
        with service(PROCESSES, {"RATE_LIMIT": "0"}) as stack:
            attacker, run = tenant(stack, "Attacker"), runner(stack, tenant(stack, "Victim"))
            run()
            attack(attacker, steps, number)
            with victim(run) as felt:
                time.sleep(SECONDS)
            statuses = "SELECT status, count(*) FROM runs WHERE workspace_id = %s GROUP BY 1"
            ended = dict(rows(stack, statuses, attacker.workspace_id))
            tell(f"{name}: {ended} after {SECONDS} s; a run of another workspace: {felt}")
            felt.check()


def runner(stack: Stack, owner: Tenant) -> Callable[[], None]:
    """Starts a run of one step, and waits until it has ended."""
    caller, automation_id = owner.caller(), published(owner, [{"id": "tag", "kind": "add_tag", "tag": "vip"}])

    def run() -> None:
        contact = caller.apply("POST", "contacts", {"external_id": str(time.time_ns())}).data
        answer = caller.call("POST", f"automations/{automation_id}/start", {"contact_id": contact["id"]})
        status, run_id = "SELECT status FROM runs WHERE id = %s", answer.data["resource"]["id"]
        wait_until(lambda: rows(stack, status, run_id) == [("completed",)], 120, "the run ends")

    return run


def attack(attacker: Tenant, steps: list[dict[str, Any]], number: int) -> None:
    """Starts the runs; they are accepted when this returns."""
    caller, automation_id = attacker.caller(), published(attacker, steps)
    for each in range(number):
        contact = caller.apply("POST", "contacts", {"email": f"{each}@example.com"}).data
        caller.call("POST", f"automations/{automation_id}/start", {"contact_id": contact["id"]})


def published(owner: Tenant, steps: list[dict[str, Any]]) -> str:
    """A published automation with these steps."""
    caller = owner.caller()
    made = caller.apply("POST", "automations", {"name": "Runs", "definition": {"steps": steps}}).data
    caller.apply("POST", f"automations/{made['id']}/publish")
    return str(made["id"])

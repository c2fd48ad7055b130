"""Workspaces whose runs compute as much as they may: runs and writes of another workspace."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from app.lib import ids
from tests.doors.services import Tenant, service, tenant
from tests.doors.victims import victim
from tests.journeys.audit import rows
from tests.journeys.waiting import wait_until
from tests.stack.stack import Stack

Tell = Callable[[str], None]
Steps = Sequence[Mapping[str, Any]]
PROCESSES = {"web": 1, "writes": 1, "automations": 1, "retries": 1, "scheduler": 1}
SECONDS = 15
LOOP = "{% for i in (1..1500) %}{% assign x = contact.email | upcase | size %}{% endfor %}{{ x }}"
CALL = {"id": "call", "kind": "http_request", "method": "POST", "address": "https://shop.example/hooks"}
HOSTILE = [{**CALL, "body": [LOOP] * 1_000}]
# Six steps of a tenth of a second each, on the machine where this was found.
HEAVY = [{"id": f"s{number}", "kind": "set_field", "field": "first_name", "value": LOOP} for number in range(6)]


class Attack(NamedTuple):
    """Contacts of each of these workspaces enter an automation with these steps."""

    steps: Steps
    contacts: int
    workspaces: int = 1
    is_import: bool = False


ATTACKS = {
    "20 runs with 1,000 templates in one step": Attack(HOSTILE, 20),
    "an import of 300 contacts, each of which starts a run of six heavy steps": Attack(HEAVY, 300, is_import=True),
    "four workspaces that import 300 such contacts each": Attack(HEAVY, 300, workspaces=4, is_import=True),
}


def measure(tell: Tell) -> None:
    for name, attack in ATTACKS.items():
        with service(PROCESSES, {"RATE_LIMIT": "0"}) as stack:
            attackers = [tenant(stack, f"Attacker {number}") for number in range(attack.workspaces)]
            other = tenant(stack, "Victim")
            run, write = runner(stack, other), writer(other)
            run()
            for attacker in attackers:
                enter(attacker, attack)
            with victim(run) as runs, victim(write) as writes:
                time.sleep(SECONDS)
            statuses = "SELECT status, count(*) FROM runs WHERE workspace_id <> %s GROUP BY 1"
            tell(f"{name}: {dict(rows(stack, statuses, other.workspace_id))} after {SECONDS} s")
            tell(f"    a run of another workspace: {runs}")
            tell(f"    a write of another workspace: {writes}")
            runs.check()
            writes.check()


def contact() -> dict[str, str]:
    return {"external_id": ids.new("con")}


def writer(owner: Tenant) -> Callable[[], object]:
    """Creates a contact."""
    caller = owner.caller()
    return lambda: caller.apply("POST", "contacts", contact())


def runner(stack: Stack, owner: Tenant) -> Callable[[], None]:
    """Starts a run of one step, and waits until it has ended."""
    caller, automation_id = owner.caller(), published(owner, [{"id": "tag", "kind": "add_tag", "tag": "vip"}])

    def run() -> None:
        made = caller.apply("POST", "contacts", contact()).data
        answer = caller.call("POST", f"automations/{automation_id}/start", {"contact_id": made["id"]})
        status, run_id = "SELECT status FROM runs WHERE id = %s", answer.data["resource"]["id"]
        wait_until(lambda: rows(stack, status, run_id) == [("completed",)], 120, "the run ends")

    return run


def enter(attacker: Tenant, attack: Attack) -> None:
    """Starts the runs; they, or the import that starts them, are accepted when this returns."""
    caller = attacker.caller()
    emails = [f"{number}@example.com" for number in range(attack.contacts)]
    if attack.is_import:
        published(attacker, attack.steps, [{"event": "contact.created"}])
        lines = b"\n".join(json.dumps({"email": email}).encode() for email in emails)
        caller.call("POST", "contacts/import", lines, {"Content-Type": "application/jsonl"})
        return
    automation_id = published(attacker, attack.steps)
    for email in emails:
        made = caller.apply("POST", "contacts", {"email": email}).data
        caller.call("POST", f"automations/{automation_id}/start", {"contact_id": made["id"]})


def published(owner: Tenant, steps: Steps, triggers: Sequence[Mapping[str, Any]] = ()) -> str:
    """A published automation with these steps."""
    caller, definition = owner.caller(), {"triggers": triggers, "steps": steps}
    made = caller.apply("POST", "automations", {"name": "Runs", "definition": definition}).data
    caller.apply("POST", f"automations/{made['id']}/publish")
    return str(made["id"])

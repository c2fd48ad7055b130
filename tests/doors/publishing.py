"""A tenant publishes versions of 250 KB, and unpublishes, while it starts runs: runs and writes of another one."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from tests.doors.memory import sizes
from tests.doors.services import Tenant, service, tenant
from tests.doors.templates import CALL, contact, runner, writer
from tests.doors.victims import attacking, victim
from tests.journeys.audit import rows
from tests.journeys.shops import NoAnswer
from tests.journeys.waiting import wait_until

Tell = Callable[[str], None]
SECONDS, STARTERS, EVERY_SECONDS = 20, 8, 0.1
# Thirty templates of eight kilobytes, none of which costs much.
TEXTS = [f"{number} {'x' * 8_000} {{{{ contact.id }}}}" for number in range(30)]


def measure(tell: Tell) -> None:
    with service(settings={"RATE_LIMIT": "0"}) as stack:
        attacker, other = tenant(stack, "Attacker"), tenant(stack, "Victim")
        run, write = runner(stack, other), writer(other)
        run()
        caller = attacker.caller()
        automation_id = caller.apply("POST", "automations", draft(0)).data["id"]
        caller.apply("POST", f"automations/{automation_id}/publish")
        statuses, before = Counter[str](), sizes(stack)
        acts = [partial(work, attacker, automation_id, statuses) for work in (publish, *[start] * STARTERS)]
        with attacking(acts), victim(run) as runs, victim(write) as writes:
            time.sleep(SECONDS)
        tell(f"in {SECONDS} s: {dict(statuses)}")
        tell(f"    a run of another workspace: {runs}")
        tell(f"    a write of another workspace: {writes}")
        wait_until(lambda: not rows(stack, _LEFT, attacker.workspace_id), 120, "all runs have ended")
        after = sizes(stack)
        growth = (f"{name} {after[name] - size:.0f}" for name, size in before.items())
        tell(f"    more memory, in MiB: {', '.join(growth)}")
        tell(f"    runs and jobs: {dict(rows(stack, _ENDED, *[attacker.workspace_id] * 3))}")
        runs.check()
        writes.check()


def draft(number: int) -> dict[str, object]:
    """Three steps that are taken, and a large one that never is."""
    small = [{"id": f"s{place}", "kind": "add_tag", "tag": "{{ contact.id }}"} for place in range(3)]
    never = {"field": "contact.email", "is": "equals", "value": "never"}
    large = {"id": "which", "kind": "branch", "if": never, "then": [{**CALL, "body": TEXTS}]}
    return {"name": f"Version {number}", "definition": {"steps": [*small, large]}}


def start(attacker: Tenant, automation_id: str, statuses: Counter[str], is_over: threading.Event) -> None:
    """Starts runs for new contacts."""
    caller = attacker.caller()
    while not is_over.is_set():
        with suppress(NoAnswer):
            made = caller.apply("POST", "contacts", contact()).data
            answer = caller.call("POST", f"automations/{automation_id}/start", {"contact_id": made["id"]})
            statuses[f"start {answer.status}"] += 1


def publish(attacker: Tenant, automation_id: str, statuses: Counter[str], is_over: threading.Event) -> None:
    """Changes the draft and publishes it, ten times a second; unpublishes it every tenth time."""
    caller, number = attacker.caller(), 0
    while not is_over.wait(EVERY_SECONDS):
        number += 1
        acts = [("PATCH", "", draft(number)), ("POST", "/publish", None)]
        acts += [("POST", "/unpublish", None), ("POST", "/publish", None)] * (number % 10 == 0)
        for method, path, body in acts:
            with suppress(NoAnswer):
                answer = caller.call(method, f"automations/{automation_id}{path}", body)
                statuses[f"{path or 'change'} {answer.status}"] += 1


_LEFT = "SELECT 1 FROM runs WHERE workspace_id = %s AND finished_at IS NULL LIMIT 1"
_ENDED = """
    SELECT 'runs ' || status, count(*) FROM runs WHERE workspace_id = %s GROUP BY 1
    UNION ALL SELECT 'jobs ' || status || coalesce(' ' || (problem->>'title'), ''), count(*) FROM jobs
        WHERE workspace_id = %s GROUP BY 1
    UNION ALL SELECT 'versions', count(*) FROM automation_versions WHERE workspace_id = %s
"""

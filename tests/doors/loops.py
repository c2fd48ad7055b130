"""Automations of one workspace start each other, for thousands of contacts at once: runs and writes of another."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from tests.doors.services import Tenant, service, tenant
from tests.doors.templates import PROCESSES, runner, writer
from tests.doors.victims import victim
from tests.journeys.audit import rows

Tell = Callable[[str], None]
SECONDS = 20
CHANGE = {"id": "change", "kind": "set_field", "field": "first_name", "value": "{{ contact.first_name | plus: 1 }}"}
WAIT = {"id": "wait", "kind": "wait", "seconds": 1}


class Loop(NamedTuple):
    """For each of these contacts, automations with these triggers, steps and exits."""

    contacts: int
    automations: Sequence[Mapping[str, Any]]


def tagging(kind: str, tag: str, **further: Any) -> Mapping[str, Any]:
    """On the tag `ping`: a wait, then this step."""
    steps = [WAIT, {"id": kind, "kind": kind, "tag": tag}]
    event = "tag.removed" if kind == "add_tag" else "tag.added"
    return {"definition": {"triggers": [{"event": event, "tag": "ping"}], "steps": steps}, **further}


def changing(steps: Sequence[Mapping[str, Any]], **further: Any) -> Mapping[str, Any]:
    return {"definition": {"triggers": [{"event": "contact.updated"}], "steps": steps}, "reentry": "every", **further}


LOOPS = {
    "two automations, one of which undoes what the other does": Loop(
        2_000, [tagging("add_tag", "ping"), tagging("remove_tag", "ping")]
    ),
    "the same, and each ends the runs of the other": Loop(
        2_000,
        [
            tagging("add_tag", "ping", exits=[{"event": "tag.removed"}]),
            tagging("remove_tag", "ping", exits=[{"event": "tag.added"}]),
        ],
    ),
    "five automations, each of which starts all five": Loop(1, [changing([CHANGE])] * 5),
}


def measure(tell: Tell) -> None:
    for name, loop in LOOPS.items():
        with service(PROCESSES, {"RATE_LIMIT": "0"}) as stack:
            attacker, other = tenant(stack, "Attacker"), tenant(stack, "Victim")
            run, write = runner(stack, other), writer(other)
            run()
            begin(attacker, loop)
            with victim(run) as runs, victim(write) as writes:
                time.sleep(SECONDS)
            depths = dict(rows(stack, _DEPTHS, attacker.workspace_id))
            tell(f"{name}, {loop.contacts:,} contacts: {sum(depths.values()):,} runs in {SECONDS} s, by depth {depths}")
            tell(f"    a run of another workspace: {runs}")
            tell(f"    a write of another workspace: {writes}")
            runs.check()
            writes.check()
            assert max(depths) <= 10


def begin(attacker: Tenant, loop: Loop) -> None:
    """Publishes the automations, imports the contacts and gives each of them what starts the first."""
    caller = attacker.caller()
    for number, document in enumerate(loop.automations):
        made = caller.apply("POST", "automations", {"name": f"Loop {number}", **document}).data
        caller.apply("POST", f"automations/{made['id']}/publish")
    for change in ({}, {"tags": ["ping"], "first_name": "0"}):
        lines = [json.dumps({"external_id": str(number), **change}).encode() for number in range(loop.contacts)]
        caller.call("POST", "contacts/import", b"\n".join(lines), {"Content-Type": "application/jsonl"})


_DEPTHS = "SELECT depth, count(*) FROM runs WHERE workspace_id = %s GROUP BY depth ORDER BY depth"

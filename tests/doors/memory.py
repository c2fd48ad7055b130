"""Ten minutes of writes, reads and runs: the memory of every process after the first two and after all of them."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from functools import partial

import psutil

from app.lib import ids
from tests.doors.services import Tenant, service, tenant
from tests.doors.templates import published
from tests.doors.victims import attacking
from tests.stack.stack import Stack

SECONDS = float(os.environ.get("SECONDS_OF_LOAD", "600"))
TENANTS, PAUSE_SECONDS = 4, 0.1
STEPS = [{"id": "tag", "kind": "add_tag", "tag": "vip"}]


def measure(tell: Callable[[str], None]) -> None:
    with service(settings={"RATE_LIMIT": "0"}) as stack:
        done = [0] * TENANTS
        acts = [partial(work, tenant(stack, f"Tenant {number}"), done, number) for number in range(TENANTS)]
        with attacking(acts):
            time.sleep(SECONDS / 5)
            early = sizes(stack)
            time.sleep(SECONDS * 4 / 5)
            late = sizes(stack)
    tell(f"{sum(done):,} writes and as many runs and reads in {SECONDS:.0f} s")
    for name, size in early.items():
        tell(f"{name:16} {size:6.1f} MiB after {SECONDS / 5:.0f} s, {late[name]:6.1f} at the end")


def work(owner: Tenant, done: list[int], number: int, is_over: threading.Event) -> None:
    """Creates contacts, each of whom starts a run, and reads them."""
    caller, automation_id = owner.caller(), published(owner, STEPS)
    while not is_over.wait(PAUSE_SECONDS):
        contact = caller.apply("POST", "contacts", {"external_id": ids.new("con")}).data
        caller.call("POST", f"automations/{automation_id}/start", {"contact_id": contact["id"]})
        caller.get("contacts?limit=20")
        done[number] += 1


def sizes(stack: Stack) -> dict[str, float]:
    """MiB that are each process's own, its children's included."""
    found: dict[str, float] = {}
    for name in stack.processes.names:
        leader = psutil.Process(stack.processes.pid(name))
        for each in (leader, *leader.children(recursive=True)):
            found[name] = found.get(name, 0.0) + each.memory_full_info().uss / 1024**2
    return found

"""An outage of the workers leaves many workspaces waiting: new writes of another workspace while the backlog drains."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import psycopg2
import redis

from app.lib import ids
from tests.doors.services import Tenant, service, tenant
from tests.doors.victims import victim
from tests.journeys.audit import rows
from tests.journeys.faults import nobody_at
from tests.journeys.waiting import wait_until
from tests.stack.stack import Stack

PROCESSES = {"web": 1, "writes": 1, "scheduler": 1}
WORKSPACES = [int(number) for number in os.environ.get("WAITING", "3000 30000").split()]
LONGEST_SECONDS = 30.0  # of the figures; the backlog may take longer


def measure(tell: Callable[[str], None]) -> None:
    """Their bells wait in Redis, and then: they were all lost, so that the scheduler rings."""
    for number in WORKSPACES:
        for are_lost in (False, True):
            with service(PROCESSES, {"RATE_LIMIT": "0"}) as stack:
                _recover(stack, number, are_lost, tell)


def _recover(stack: Stack, number: int, are_lost: bool, tell: Callable[[str], None]) -> None:
    caller = tenant(stack, "Victim").caller()
    template = tenant(stack, "Waiting")
    client = redis.Redis.from_url(stack.redis.url)
    with nobody_at(stack, "writes"):
        _write_for(stack, template, number)
        if not are_lost:
            wait_until(lambda: _rung(client) >= number, 300, "all bells ring")
        else:
            client.flushdb()
    began = time.monotonic()
    with victim(lambda: caller.apply("POST", "contacts", {"external_id": ids.new("con")}), 0.1) as living:
        ends = began + LONGEST_SECONDS
        wait_until(lambda: not _waiting(stack) or time.monotonic() > ends, LONGEST_SECONDS + 30, "some have drained")
        done, seconds = number - _waiting(stack), time.monotonic() - began
        living.stop()
    bells = "lost" if are_lost else "waiting"
    tell(f"{number:,} workspaces, bells {bells}: {done / seconds:.0f} mailboxes/s; a new write: {living}")


def _rung(client: redis.Redis) -> int:
    return sum(1 for _ in client.scan_iter("bell:writes:*", count=5000))


def _waiting(stack: Stack) -> int:
    return int(rows(stack, "SELECT count(*) FROM jobs WHERE due_at IS NOT NULL")[0][0])

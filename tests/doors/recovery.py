"""An outage of the workers leaves many workspaces waiting: new writes of another workspace while the backlog drains."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import psycopg2
import redis
from dramatiq import Message
from dramatiq.brokers.redis import RedisBroker

from app.bells import Bell
from app.lib import ids
from tests.doors.services import service, tenant
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
        for are_lost in (True, False):
            with service(PROCESSES, {"RATE_LIMIT": "0"}) as stack:
                _recover(stack, number, are_lost, tell)


def _recover(stack: Stack, number: int, are_lost: bool, tell: Callable[[str], None]) -> None:
    caller = tenant(stack, "Victim").caller()
    template = tenant(stack, "Waiting")
    with nobody_at(stack, "writes"):
        template.caller().call("POST", "contacts", {"external_id": "waiting"})
        names = _copy(stack, template.workspace_id, number)
        if are_lost:
            redis.Redis.from_url(stack.redis.url).flushdb()
        else:
            _ring(stack, names)
    began = time.monotonic()
    with victim(lambda: caller.apply("POST", "contacts", {"external_id": ids.new("con")}), 0.1) as living:
        ends = began + LONGEST_SECONDS
        wait_until(lambda: not _waiting(stack) or time.monotonic() > ends, LONGEST_SECONDS + 30, "some have drained")
        done, seconds = number - _waiting(stack), time.monotonic() - began
        living.stop()
    kind = "lost" if are_lost else "waiting"
    tell(f"{number:,} workspaces, bells {kind}: {done / seconds:.0f} mailboxes/s; a new write: {living}")


def _copy(stack: Stack, workspace_id: str, number: int) -> list[str]:
    """More workspaces, each with a copy of the write that waits in this one."""
    names = [ids.new("ws") for _ in range(number)]
    with psycopg2.connect(stack.postgres.url) as connection, connection.cursor() as cursor:
        cursor.execute(_WORKSPACES, (names, workspace_id))
        cursor.execute(_JOBS, (names, [ids.new("job") for _ in names], workspace_id))
    connection.close()
    return names


def _ring(stack: Stack, names: list[str]) -> None:
    """As `web` does for writes that come one by one."""
    client = redis.Redis.from_url(stack.redis.url)
    broker = RedisBroker(client=client, middleware=[])
    for name in names:
        rung_at = int(time.time() * 1000)
        client.set(Bell("writes", name).flag, rung_at)
        broker.enqueue(Message("writes", "writes", (name,), {}, {}, message_timestamp=rung_at))


def _waiting(stack: Stack) -> int:
    return int(rows(stack, "SELECT count(*) FROM jobs WHERE due_at IS NOT NULL")[0][0])


_WORKSPACES = """
    INSERT INTO workspaces SELECT copy.* FROM workspaces w, unnest(%s) AS new(workspace),
        jsonb_populate_record(w, jsonb_build_object('id', workspace)) AS copy
    WHERE w.id = %s
"""
_JOBS = """
    INSERT INTO jobs SELECT copy.* FROM jobs j, unnest(%s, %s) AS new(workspace, job),
        jsonb_populate_record(j, jsonb_build_object('id', job, 'workspace_id', workspace,
            'position', nextval('jobs_position'))) AS copy
    WHERE j.workspace_id = %s
"""

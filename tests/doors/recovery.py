"""An outage of workers leaves many mailboxes waiting: what another workspace does while the backlog drains."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import cycle, islice

import psycopg2
import redis
from dramatiq import Message
from dramatiq.brokers.redis import RedisBroker

from app.bells import Bell
from app.lib import ids
from app.models.automations import Enrolment
from tests.doors.services import service, tenant
from tests.doors.templates import published, runner
from tests.doors.victims import victim
from tests.journeys.audit import rows
from tests.journeys.faults import let_pass, nobody_at
from tests.journeys.shops import open_shop
from tests.journeys.waiting import wait_until
from tests.stack.receiver import Receiver
from tests.stack.stack import Stack

NUMBERS = [int(number) for number in os.environ.get("WAITING", "3000 30000").split()]
KINDS = os.environ.get("KINDS", "writes runs deliveries").split()
LONGEST_SECONDS = 30.0  # of the figures; the backlog may take longer
MOST_SECONDS = 2.0
# Mailboxes that have far more mail than the others, and how much.
BUSY, EACH = 6, 2_000


@dataclass(frozen=True)
class Mailboxes:
    """What waits: the queue and the table of its mail; `fill` makes mailboxes, `act` is what the victim does."""

    queue: str
    table: str
    fill: Callable[[int], list[str]]
    act: Callable[[], object]

    def waiting(self, stack: Stack) -> int:
        return int(rows(stack, f"SELECT count(*) FROM {self.table} WHERE due_at IS NOT NULL")[0][0])


def measure(tell: Callable[[str], None]) -> None:
    """Their bells were all lost, so that the scheduler rings, and then: they wait in Redis."""
    for kind in KINDS:
        for number in NUMBERS:
            for are_lost in (True, False):
                _measure(kind, number, are_lost, tell)


def _measure(kind: str, number: int, are_lost: bool, tell: Callable[[str], None]) -> None:
    away = {"writes": ["writes"], "runs": ["automations"], "deliveries": ["deliveries", "slow-deliveries"]}[kind]
    processes = dict.fromkeys(["web", "writes", *away, "scheduler"], 1)
    with ExitStack() as open, service(processes, {"RATE_LIMIT": "0"}) as stack:
        boxes = {"writes": _writes, "runs": _runs, "deliveries": _deliveries}[kind](stack, open)
        boxes.act()
        with ExitStack() as outage:
            for process in away:
                outage.enter_context(nobody_at(stack, process))
            owners = boxes.fill(number)
            if are_lost:
                redis.Redis.from_url(stack.redis.url).flushdb()
            else:
                _ring(stack, boxes.queue, owners)
        before = boxes.waiting(stack)
        wait_until(lambda: boxes.waiting(stack) < before, 60, "the workers are back")
        before, began = boxes.waiting(stack), time.monotonic()
        with victim(boxes.act, 0.1) as living:
            while (left := boxes.waiting(stack)) > 2 and time.monotonic() - began < LONGEST_SECONDS:
                let_pass(0.2)
            speed = (before - left) / (time.monotonic() - began)
    what = f"{kind} of {number:,} mailboxes, bells {'lost' if are_lost else 'waiting'}"
    tell(f"{what}: {speed:.0f} of {before:,} a second; another workspace: {living}")
    living.check(MOST_SECONDS)


def _writes(stack: Stack, open: ExitStack) -> Mailboxes:
    """Writes of as many workspaces; some of these have thousands."""
    caller, template = tenant(stack, "Victim").caller(), tenant(stack, "Waiting")

    def fill(number: int) -> list[str]:
        template.caller().call("POST", "contacts", {"external_id": "waiting"})
        names = _new("ws", number)
        _copy(stack, "workspaces", template.workspace_id, id=names)
        owners = [*names, *_of_busy(names)]
        positions = [str(each) for (each,) in rows(stack, _POSITIONS, len(owners))]
        of = {"id": _new("job", len(owners)), "workspace_id": owners, "position": positions}
        _copy(stack, "jobs", template.workspace_id, **of)
        return names

    return Mailboxes("writes", "jobs", fill, lambda: caller.apply("POST", "contacts", {"external_id": ids.new("con")}))


def _runs(stack: Stack, open: ExitStack) -> Mailboxes:
    """Runs of as many workspaces, one in each."""
    template, act = tenant(stack, "Waiting"), runner(stack, tenant(stack, "Victim"))
    automation_id = published(template, [{"id": "tag", "kind": "add_tag", "tag": "vip"}])
    contact = template.caller().apply("POST", "contacts", {"external_id": "waiting"}).data

    def fill(number: int) -> list[str]:
        start = template.caller().apply("POST", f"automations/{automation_id}/start", {"contact_id": contact["id"]})
        assert start.status == 201
        names, automations, contacts = _new("ws", number), _new("aut", number), _new("con", number)
        of = {"workspace_id": names, "automation_id": automations}
        _copy(stack, "workspaces", template.workspace_id, id=names)
        _copy(stack, "automations", template.workspace_id, id=automations, workspace_id=names)
        _copy(stack, "automation_versions", template.workspace_id, **of)
        _copy(stack, "contacts", template.workspace_id, id=contacts, workspace_id=names)
        enrolments = [Enrolment.id_of(*each) for each in zip(contacts, automations, strict=True)]
        runs = _new("run", number)
        _copy(stack, "enrolments", template.workspace_id, id=enrolments, run_id=runs, contact_id=contacts, **of)
        _copy(stack, "runs", template.workspace_id, id=runs, contact_id=contacts, **of)
        return names

    return Mailboxes("runs", "runs", fill, act)


def _deliveries(stack: Stack, open: ExitStack) -> Mailboxes:
    """Deliveries to as many endpoints; some of these have thousands."""
    receiver = Receiver(stack.certificates.ca_file.parent)
    receiver.keeps = False
    receiver.start()
    open.callback(receiver.stop)
    shop, template = open_shop(stack, receiver, "Victim"), open_shop(stack, receiver, "Waiting")
    caller = shop.caller()

    def act() -> None:
        before = receiver.counts[shop.hook]
        caller.apply("POST", "contacts", {"external_id": ids.new("con")})
        wait_until(lambda: receiver.counts[shop.hook] > before, 120, "the event arrives")

    def fill(number: int) -> list[str]:
        template.caller().apply("POST", "contacts", {"external_id": "waiting"})
        names = _new("whe", number)
        _copy(stack, "endpoints", template.workspace_id, id=names)
        owners = [*names, *_of_busy(names)]
        _copy(stack, "deliveries", template.workspace_id, id=_new("dlv", len(owners)), endpoint_id=owners)
        return names

    return Mailboxes("deliveries", "deliveries", fill, act)


def _new(prefix: str, number: int) -> list[str]:
    return [ids.new(prefix) for _ in range(number)]


def _of_busy(names: Sequence[str]) -> list[str]:
    return list(islice(cycle(names[:BUSY]), BUSY * EACH))


def _copy(stack: Stack, table: str, source_id: str, **values: Sequence[str]) -> None:
    """Copies of the source workspace's row, one for each of these values."""
    with psycopg2.connect(stack.postgres.url) as connection, connection.cursor() as cursor:
        cursor.execute(_COLUMNS, (table,))
        columns = ", ".join(name for (name,) in cursor.fetchall())
        fields, arrays = ", ".join(f"'{name}', new.{name}" for name in values), ", ".join(["%s"] * len(values))
        cursor.execute(
            f"""
            INSERT INTO {table} ({columns}) SELECT {columns} FROM (
                SELECT copy.* FROM {table} AS source, unnest({arrays}) AS new({", ".join(values)}),
                    jsonb_populate_record(source, jsonb_build_object({fields})) AS copy
                WHERE source.{"id" if table == "workspaces" else "workspace_id"} = %s) AS copies
            """,
            (*values.values(), source_id),
        )
    connection.close()


def _ring(stack: Stack, queue: str, owners: Sequence[str]) -> None:
    """As it is done for mail that comes piece by piece."""
    client = redis.Redis.from_url(stack.redis.url)
    broker = RedisBroker(client=client, middleware=[])
    for owner in owners:
        rung_at = int(time.time() * 1000)
        client.set(Bell(queue, owner).flag, rung_at)
        broker.enqueue(Message(queue, queue, (owner,), {}, {}, message_timestamp=rung_at))


_COLUMNS = """
    SELECT column_name FROM information_schema.columns
    WHERE table_name = %s AND table_schema = 'public' AND is_generated = 'NEVER'
"""
_POSITIONS = "SELECT nextval('jobs_position') FROM generate_series(1, %s)"

"""The audit after a story: counts what was accepted, applied and received, one by one."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import psycopg2

from tests.journeys.load import Accepted, Load
from tests.journeys.shops import Shop
from tests.journeys.waiting import wait_until
from tests.stack.receiver import Received, Receiver
from tests.stack.signatures import is_genuine
from tests.stack.stack import Stack


@dataclass(frozen=True)
class Figures:
    """The counts of an audit. `refused`: requests without a response, or with 503. `duplicates`: repeated deliveries.

    `crossed`: adjacent effects in the opposite order of their jobs' positions. Only concurrent requests may cross;
    otherwise the audit fails.
    """

    accepted: int
    refused: int
    applied: int
    received: int
    duplicates: int
    crossed: int
    settled_seconds: float

    def __str__(self) -> str:
        return (
            f"accepted {self.accepted:5}  refused {self.refused:4}  applied {self.applied:5}"
            f"  received {self.received:5}  duplicates {self.duplicates:3}"
            f"  crossed {self.crossed:2}  settled in {self.settled_seconds:4.1f} s"
        )


def rows(stack: Stack, query: str, *parameters: object) -> list[tuple[Any, ...]]:
    connection = psycopg2.connect(stack.postgres.url)
    try:
        with connection, connection.cursor() as cursor:
            cursor.execute(query, parameters)
            return cursor.fetchall()
    finally:
        connection.close()


def nameless(stack: Stack) -> list[str]:
    """The tables in which a row of a workspace does not name it. A link for a new password belongs to an account."""
    tables = rows(
        stack,
        "SELECT attrelid::regclass::text FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid"
        " WHERE attname = 'workspace_id' AND NOT attnotnull AND relkind IN ('r', 'p') AND NOT relispartition"
        " AND relname <> 'password_links'",
    )
    return [table for (table,) in tables if rows(stack, f"SELECT FROM {table} WHERE workspace_id IS NULL LIMIT 1")]


def unfinished(stack: Stack, shops: Sequence[Shop]) -> int:
    """The number of the shops' jobs, fan-outs and deliveries that have not ended."""
    workspaces = [shop.workspace_id for shop in shops]
    [(number,)] = rows(
        stack,
        """
        SELECT (SELECT count(*) FROM jobs WHERE workspace_id = ANY(%s)
                AND (due_at IS NOT NULL OR status IN ('queued', 'running')))
            + (SELECT count(*) FROM events WHERE workspace_id = ANY(%s) AND due_at IS NOT NULL)
            + (SELECT count(*) FROM deliveries WHERE workspace_id = ANY(%s)
                AND (due_at IS NOT NULL OR status = 'pending'))
        """,
        *[workspaces] * 3,
    )
    return int(number)


def settle(stack: Stack, shops: Sequence[Shop], seconds: float = 40) -> float:
    """Waits until no work is left; returns the seconds it took."""
    return wait_until(lambda: unfinished(stack, shops) == 0, seconds, "every job and every delivery has ended")


def audit(stack: Stack, receiver: Receiver, load: Load) -> Figures:
    """Waits until no work is left, then asserts that every write was applied once, in order, and received."""
    settled_seconds = settle(stack, load.shops)
    crossed = 0
    for shop in load.shops:
        accepted = {write.job_id: write for write in load.accepted if write.workspace_id == shop.workspace_id}
        crossed += check_applied(stack, shop, accepted)
        _check_received(stack, shop, receiver)
    hooks = {shop.hook for shop in load.shops}
    received = [each.delivery_id for each in receiver.received if each.path in hooks]
    return Figures(
        accepted=len(load.accepted),
        refused=len(load.refused),
        applied=_events(stack, load.shops),
        received=len(set(received)),
        duplicates=len(received) - len(set(received)),
        crossed=crossed,
        settled_seconds=settled_seconds,
    )


def check_applied(stack: Stack, shop: Shop, accepted: dict[str, Accepted]) -> int:
    """Asserts that the shop's accepted writes were applied once and in order. Returns how many crossed."""
    _check_jobs(stack, shop, accepted)
    return _check_effects(stack, shop, accepted)


def _check_jobs(stack: Stack, shop: Shop, accepted: dict[str, Accepted]) -> None:
    """Asserts that each accepted write has one job, which succeeded, and that there are no others."""
    found = dict(
        rows(
            stack,
            "SELECT id, status FROM jobs WHERE workspace_id = %s AND kind = 'contacts.upsert'",
            shop.workspace_id,
        )
    )
    assert found == dict.fromkeys(accepted, "succeeded")


def _check_effects(stack: Stack, shop: Shop, accepted: dict[str, Accepted]) -> int:
    """Asserts that each write made one event, and that each event of a contact shows all writes up to its own.

    Returns how many adjacent effects crossed.
    """
    effects: dict[str, list[tuple[Accepted, int, dict[str, int]]]] = defaultdict(list)
    for job_id, position, body in rows(
        stack,
        "SELECT job_id, position, body FROM events JOIN jobs ON jobs.id = job_id WHERE events.workspace_id = %s",
        shop.workspace_id,
    ):
        write, contact = accepted[job_id], json.loads(bytes(body))["data"]["contact"]
        assert contact["external_id"] == write.contact
        effects[write.contact].append((write, position, contact["custom_fields"]))
    assert sorted(write.job_id for chain in effects.values() for write, _, _ in chain) == sorted(accepted)
    for contact, chain in effects.items():
        chain.sort(key=lambda effect: sum(effect[2].values()))
        _check_chain([(write, fields) for write, _, fields in chain])
        assert _stored_fields(stack, shop, contact) == chain[-1][2]
    return sum(former[1] > latter[1] for chain in effects.values() for former, latter in pairwise(chain))


def _check_chain(chain: Sequence[tuple[Accepted, dict[str, int]]]) -> None:
    fields: dict[str, int] = {}
    latest_sent = 0.0
    for write, shown in chain:
        fields = fields | {write.client: write.number}
        assert shown == fields
        # Otherwise it was overtaken by a write that was sent after this one had been accepted.
        assert write.answered_at > latest_sent
        latest_sent = max(latest_sent, write.sent_at)


def _stored_fields(stack: Stack, shop: Shop, contact: str) -> Any:
    query = "SELECT custom_fields FROM contacts WHERE workspace_id = %s AND external_id = %s"
    return rows(stack, query, shop.workspace_id, contact)[0][0]


def _check_received(stack: Stack, shop: Shop, receiver: Receiver) -> None:
    """Asserts that every delivery arrived with the bytes of its event and a genuine signature each time."""
    arrived: dict[str, list[Received]] = defaultdict(list)
    for each in receiver.received:
        if each.path == shop.hook:
            arrived[each.delivery_id].append(each)
    sent = rows(
        stack,
        "SELECT deliveries.id, body, status FROM events LEFT JOIN deliveries ON event_id = events.id"
        " WHERE events.workspace_id = %s",
        shop.workspace_id,
    )
    assert arrived.keys() == {delivery_id for delivery_id, _, _ in sent}
    for delivery_id, body, status in sent:
        assert status == "delivered"
        assert {each.body for each in arrived[delivery_id]} == {bytes(body)}
        assert _are_genuine(shop, arrived[delivery_id])


def _are_genuine(shop: Shop, arrived: Iterable[Received]) -> bool:
    return all(is_genuine(shop.secret, each.signature, each.body, each.at) for each in arrived)


def _events(stack: Stack, shops: Sequence[Shop]) -> int:
    query = "SELECT count(*) FROM events WHERE workspace_id = ANY(%s)"
    return int(rows(stack, query, [shop.workspace_id for shop in shops])[0][0])

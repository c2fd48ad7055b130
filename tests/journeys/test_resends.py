"""Resent deliveries, and retries brought forward, all go out, once each, while the workers that do it are killed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta

import psycopg2
import pytest

from app.lib import clock, ids
from tests.journeys.audit import rows
from tests.journeys.shops import Shop, open_shop
from tests.journeys.waiting import wait_until
from tests.stack.receiver import Receiver
from tests.stack.stack import Stack

MANY = 6000
KILLS = 3


@pytest.mark.nightly
def test_many_deliveries_are_released_and_resent_though_the_worker_is_killed(
    stack: Stack, receiver: Receiver, report: Callable[[object], None]
) -> None:
    shop = open_shop(stack, receiver)
    caller = shop.caller()
    receiver.answers[shop.hook] = 410
    caller.apply("POST", "contacts", {"external_id": "first"})
    endpoint = f"webhooks/endpoints/{shop.endpoint_id}"
    wait_until(lambda: caller.get(endpoint)["state"] == "stopped", 20, "the endpoint stops")
    held, failed = _make(stack, shop, "held"), _make(stack, shop, "failed")
    receiver.answers[shop.hook] = 200
    receiver.clear()

    caller.apply("POST", f"{endpoint}/enable", {"release_held": True})
    _kill_while_it_runs(stack, shop)
    waiting = _make(stack, shop, "pending", next_attempt_at=clock.now() + timedelta(hours=1))
    chosen = {"statuses": ["failed", "pending"], "kinds": ["contact.created"]}
    resend = caller.apply("POST", f"{endpoint}/resend", chosen).data
    _kill_while_it_runs(stack, shop)

    sweep = f"webhooks/sweeps/{resend['id']}"
    wait_until(lambda: caller.get(sweep)["status"] == "finished", 60, "the resend ends")
    wait_until(lambda: receiver.counts[shop.hook] >= 3 * MANY + 1, 120, "everything arrives")
    ended = caller.get(sweep)
    # Including the one that got a 410.
    assert (ended["count"], ended["changed"], ended["skipped"]) == (2 * MANY + 1, 2 * MANY + 1, 0)
    times = Counter(received.delivery_id for received in receiver.received)
    assert set(times) >= held | failed | waiting
    assert set(times.values()) == {1}
    report(f"{len(times)} deliveries sent again, each once, over {2 * KILLS} kills")


def _make(stack: Stack, shop: Shop, status: str, next_attempt_at: datetime | None = None) -> set[str]:
    """Many more deliveries of the event that there is."""
    made = {ids.new("dlv") for _ in range(MANY)}
    copies = """
        INSERT INTO deliveries
            (id, workspace_id, event_id, endpoint_id, kind, contact_id, status, due_at, next_attempt_at)
        SELECT made.id, workspace_id, event_id, endpoint_id, kind, contact_id, %s, NULL, %s
        FROM (SELECT * FROM deliveries WHERE endpoint_id = %s ORDER BY id LIMIT 1) AS one
        CROSS JOIN unnest(%s::text[]) AS made(id)
    """
    with psycopg2.connect(stack.postgres.url) as connection, connection.cursor() as cursor:
        cursor.execute(copies, (status, next_attempt_at, shop.endpoint_id, list(made)))
    connection.close()
    return made


def _kill_while_it_runs(stack: Stack, shop: Shop) -> None:
    for _ in range(KILLS):
        before = _changed(stack, shop)
        wait_until(
            lambda before=before: _changed(stack, shop) > before or not _is_running(stack, shop), 60, "it goes on"
        )
        stack.processes.kill("retries")


def _changed(stack: Stack, shop: Shop) -> int:
    return int(rows(stack, "SELECT sum(changed) FROM sweeps WHERE endpoint_id = %s", shop.endpoint_id)[0][0])


def _is_running(stack: Stack, shop: Shop) -> bool:
    return bool(rows(stack, "SELECT 1 FROM sweeps WHERE endpoint_id = %s AND due_at IS NOT NULL", shop.endpoint_id))

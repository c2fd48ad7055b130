"""Controls over all runs of an automation take effect at once, whoever holds them up."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import psycopg2
import pytest

from tests.journeys.audit import rows
from tests.journeys.runs import make_due, make_sleepers, publish, statuses
from tests.journeys.shops import Shop, open_shop
from tests.journeys.waiting import wait_until
from tests.stack.receiver import Receiver
from tests.stack.stack import Stack

RUNS, HELD = 1_000, 150  # more are held than a part of the walk looks at
STEPS: list[dict[str, Any]] = [
    {"id": "pause", "kind": "wait", "seconds": 86_400},
    {"id": "after", "kind": "add_tag", "tag": "after"},
]


def waiting_runs(stack: Stack, shop: Shop) -> str:
    automation = publish(shop, STEPS)
    make_sleepers(stack, shop.workspace_id, automation, RUNS)
    return automation


@pytest.mark.nightly
def test_no_run_goes_on_once_all_are_being_cancelled(stack: Stack, receiver: Receiver) -> None:
    """They fall due together while others hold those at which the walk begins."""
    shop = open_shop(stack, receiver)
    automation = waiting_runs(stack, shop)
    with closing(psycopg2.connect(stack.postgres.url)) as other, other, other.cursor() as cursor:
        held = "SELECT FROM contacts WHERE workspace_id = %s ORDER BY id LIMIT %s FOR NO KEY UPDATE"
        cursor.execute(held, (shop.workspace_id, HELD))
        job = shop.caller().call("POST", f"automations/{automation}/cancel-runs", {}).data["id"]
        running = "SELECT 1 FROM jobs WHERE id = %s AND progress IS NOT NULL"
        wait_until(lambda: rows(stack, running, job), 20, "the cancellation is marked")
        make_due(stack, automation)
        wait_until(lambda: statuses(stack, automation)["waiting"] <= HELD, 60, "all others have been taken up")

    wait_until(lambda: shop.caller().get(f"jobs/{job}")["status"] == "succeeded", 60, "the job succeeds")
    assert statuses(stack, automation) == {"cancelled": RUNS}
    assert rows(stack, "SELECT 1 FROM run_steps WHERE workspace_id = %s", shop.workspace_id) == []


def test_the_end_of_a_pause_waits_for_nobody_and_releases_all(stack: Stack, receiver: Receiver) -> None:
    shop = open_shop(stack, receiver)
    automation = waiting_runs(stack, shop)
    shop.caller().apply("POST", f"automations/{automation}/pause")
    make_due(stack, automation)
    wait_until(lambda: statuses(stack, automation) == {"held": RUNS}, 60, "the pause holds all")

    with closing(psycopg2.connect(stack.postgres.url)) as other, other, other.cursor() as cursor:
        cursor.execute("SELECT pg_current_xact_id()")  # open as long as the block
        shop.caller().apply("POST", f"automations/{automation}/resume")
        shop.caller().apply("POST", "contacts", {"external_id": "behind"})
        wait_until(lambda: statuses(stack, automation) == {"completed": RUNS}, 60, "all go on")

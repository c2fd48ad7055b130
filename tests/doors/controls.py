"""A transaction stays open somewhere in the cluster while a tenant ends pauses; its other writes go on."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

import psycopg2

from tests.doors.services import service, tenant
from tests.doors.victims import victim
from tests.journeys.runs import publish
from tests.journeys.test_controls import STEPS

PAUSES = 40


def measure(tell: Callable[[str], None]) -> None:
    """The victim's act: a write of the same workspace is applied."""
    with service() as stack:
        shop = tenant(stack, "Shop")
        automation, caller, controller = publish(shop, STEPS), shop.caller(), shop.caller()
        with closing(psycopg2.connect(stack.postgres.url)) as other, other, other.cursor() as cursor:
            cursor.execute("SELECT pg_current_xact_id()")  # open as long as the block
            with victim(lambda: caller.apply("POST", "contacts", {"external_id": "one"})) as living:
                for _ in range(PAUSES):
                    controller.apply("POST", f"automations/{automation}/pause")
                    controller.apply("POST", f"automations/{automation}/resume")
        tell(f"beside {PAUSES} pauses that end: {living}")
        living.check()

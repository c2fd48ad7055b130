"""The writes of one workspace take effect in the order in which they were accepted, whoever applies them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.journeys.audit import Figures, audit, rows
from tests.journeys.load import Load
from tests.journeys.shops import open_shop
from tests.stack.receiver import Receiver
from tests.stack.stack import Stack

CHANGES = 500


@pytest.mark.parametrize("connections", [1, 4])
def test_of_many_changes_of_one_contact_the_last_accepted_stands(
    connections: int, stack: Stack, receiver: Receiver, report: Callable[[Figures], None]
) -> None:
    shop = open_shop(stack, receiver)
    load = Load([shop], clients=connections, contacts=1, pause_seconds=0, most=CHANGES // connections)

    with load:
        load.finish()

    figures = audit(stack, receiver, load)
    report(figures)
    assert figures.settled_seconds < 5, "every bell was heard: none had to be rung again"
    last = CHANGES // connections
    fields = {f"client_{number}": last for number in range(connections)}
    assert [contact["custom_fields"] for contact in shop.caller().get("contacts")] == [fields]


def test_changes_sent_one_after_the_other_start_and_end_in_that_order(stack: Stack, receiver: Receiver) -> None:
    shop = open_shop(stack, receiver)
    load = Load([shop], clients=1, contacts=1, pause_seconds=0, most=CHANGES)

    with load:
        load.finish()

    audit(stack, receiver, load)
    jobs = rows(
        stack,
        "SELECT id, started_at, finished_at FROM jobs WHERE workspace_id = %s AND kind = 'contacts.upsert'"
        " ORDER BY position",
        shop.workspace_id,
    )
    assert [job_id for job_id, _, _ in jobs] == [write.job_id for write in load.accepted]
    assert [started for _, started, _ in jobs] == sorted(started for _, started, _ in jobs)
    assert [finished for _, _, finished in jobs] == sorted(finished for _, _, finished in jobs)

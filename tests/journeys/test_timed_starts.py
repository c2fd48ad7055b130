"""A time starts one run, whatever happens to schedulers and workers: one before each booking, one for each date."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from tests.journeys.audit import rows
from tests.journeys.faults import kill
from tests.journeys.runs import publish, unfinished_runs
from tests.journeys.shops import open_shop
from tests.journeys.waiting import wait_until
from tests.stack.receiver import Receiver
from tests.stack.stack import Stack

CONTACTS, EACH = 12, 3
BEFORE_SECONDS = 3_600
# The times before the bookings come one after another, from a little later on.
FIRST_SECONDS, STEP_SECONDS = 3, 0.2
SETTLE_SECONDS = 120
STEPS = [{"id": "mark", "kind": "add_tag", "tag": "started"}]
BEFORE = {"before": "booking.starts_at", "seconds": BEFORE_SECONDS}
BIRTHDAY = {"date": "contact.custom_fields.birthday", "every": "year", "at": "09:00"}


def test_each_time_starts_one_run(stack: Stack, receiver: Receiver, report: Callable[[object], None]) -> None:
    shop = open_shop(stack, receiver)
    caller = shop.caller()
    before, birthday = (publish(shop, STEPS, triggers=[each], reentry="every") for each in (BEFORE, BIRTHDAY))
    contacts = [
        caller.apply("POST", "contacts", {"external_id": str(n), "custom_fields": {"birthday": "1992-07-21"}}).data[
            "id"
        ]
        for n in range(CONTACTS)
    ]

    began = time.monotonic()
    first = datetime.now(UTC) + timedelta(seconds=BEFORE_SECONDS + FIRST_SECONDS)
    bookings = []
    for number in range(CONTACTS * EACH):
        starts = first + timedelta(seconds=number * STEP_SECONDS)
        times = {"starts_at": starts.isoformat(), "ends_at": (starts + timedelta(hours=1)).isoformat()}
        body = {"contact_id": contacts[number % CONTACTS], "title": "Haircut", **times}
        bookings.append(caller.call("POST", "bookings", body).data["resource"]["id"])
    for done, fault in ((0, ("scheduler", "automations")), (len(bookings) // 2, ("writes", "scheduler"))):
        wait_until(lambda done=done: _started(stack, before) > done, SETTLE_SECONDS, "some runs start")
        _make_due(stack, birthday, CONTACTS // 2)
        kill(stack, *fault)

    wait_until(lambda: _started(stack, before) == len(bookings), SETTLE_SECONDS, "each booking has its run")
    wait_until(lambda: _started(stack, birthday) == CONTACTS, SETTLE_SECONDS, "each birthday has its run")
    due = "SELECT 1 FROM waiting_starts WHERE workspace_id = %s AND at <= now()"
    wait_until(lambda: not rows(stack, due, shop.workspace_id), SETTLE_SECONDS, "nothing is due")
    wait_until(lambda: unfinished_runs(stack, shop) == 0, SETTLE_SECONDS, "every run has ended")

    report(f"{len(bookings)} bookings and {CONTACTS} dates, {time.monotonic() - began:.1f} s")
    for_booking = "SELECT event->'data'->'booking'->>'id', status FROM runs WHERE automation_id = %s"
    assert Counter(rows(stack, for_booking, before)) == Counter((each, "completed") for each in bookings)
    for_contact = "SELECT contact_id, status FROM runs WHERE automation_id = %s"
    assert Counter(rows(stack, for_contact, birthday)) == Counter((each, "completed") for each in contacts)
    counts = [caller.get(f"automations/{each}/counts")["runs"]["completed"] for each in (before, birthday)]
    assert counts == [len(bookings), CONTACTS]


def _make_due(stack: Stack, automation: str, number: int) -> None:
    """Has this many starts that wait for the next day of the year wait for the one a year earlier, which has passed."""
    waiting = "SELECT id FROM waiting_starts WHERE automation_id = %s AND fired_for IS NULL AND at > now() LIMIT %s"
    earlier = f"UPDATE waiting_starts SET at = at - interval '1 year' WHERE id IN ({waiting}) RETURNING 1"
    assert len(rows(stack, earlier, automation, number)) == number


def _started(stack: Stack, automation: str) -> int:
    return len(rows(stack, "SELECT 1 FROM runs WHERE automation_id = %s", automation))

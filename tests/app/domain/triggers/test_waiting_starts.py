"""Waiting starts follow the bookings that they are for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from app.database import rows
from app.domain import writes
from app.domain.triggers import triggers
from tests.app.domain.triggers.timing import (
    DAY_BEFORE,
    HOUR,
    book,
    definition,
    merge,
    move,
    pass_time,
    start_all,
    waits,
)
from tests.app.domain.triggers.triggering import make_contact, unfollowed
from tests.automations import make_automation, runs_of
from tests.cast import Api, accept, apply, one


@pytest.fixture(autouse=True)
def automation_id(workspace_id: str) -> str:
    return make_automation(workspace_id, definition(), reentry="every")


def test_a_booking_waits_for_each_trigger(workspace_id: str, contact_id: str) -> None:
    hour_before = DAY_BEFORE | {"seconds": HOUR}
    vip = {"field": "contact.tags", "is": "contains", "value": "vip"}
    make_automation(workspace_id, definition(hour_before, hour_before | {"if": vip}))

    booking_id = book(workspace_id, contact_id, hours=48)

    assert waits() == [(booking_id, 24, False), (booking_id, 47, False)]
    assert start_all() == 0


def test_a_booking_within_the_time_is_due_at_once(workspace_id: str, contact_id: str) -> None:
    booking_id = book(workspace_id, contact_id, hours=2)

    assert waits() == [(booking_id, -22, False)]
    assert start_all() == 1
    assert len(runs_of(contact_id)) == 1
    assert waits() == [(booking_id, 2, True)]


def test_a_booking_in_the_past_starts_nothing(workspace_id: str, contact_id: str) -> None:
    book(workspace_id, contact_id, hours=-1)

    assert waits() == []


def test_a_booking_that_is_cancelled_waits_no_more(workspace_id: str, contact_id: str) -> None:
    booking_id = book(workspace_id, contact_id, hours=48)

    accept(workspace_id, "bookings.cancel", {}, booking_id)
    apply(workspace_id)

    assert waits() == []


def test_one_that_is_cancelled_before_it_is_looked_at_starts_nothing(
    workspace_id: str, contact_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    booking_id = book(workspace_id, contact_id, hours=48)
    pass_time(hours=24)
    rows("UPDATE bookings SET status = 'cancelled' WHERE id = %s RETURNING 1", (booking_id,))

    assert start_all() == 1

    assert (waits(), runs_of(contact_id)) == ([], [])


def test_an_erasure_takes_what_waits_along(api: Api, contact_id: str) -> None:
    book(api.workspace_id, contact_id, hours=48)

    api.done(api.delete(f"contacts/{contact_id}"))

    assert waits() == []


def test_a_booking_that_moves_takes_what_waits_along(workspace_id: str, contact_id: str) -> None:
    booking_id = book(workspace_id, contact_id, hours=48)

    move(workspace_id, contact_id, booking_id, hours=10)
    assert waits() == [(booking_id, 34, False)]

    move(workspace_id, contact_id, booking_id, hours=-50)
    assert waits() == [(booking_id, -16, False)]
    assert start_all() == 1
    assert len(runs_of(contact_id)) == 1


def test_one_that_moves_after_its_run_began_gets_another_only_for_a_time_to_come(
    workspace_id: str, contact_id: str
) -> None:
    booking_id = book(workspace_id, contact_id, hours=20)
    start_all()

    move(workspace_id, contact_id, booking_id, hours=2)
    assert (waits(), start_all()) == ([(booking_id, 22, True)], 0)

    move(workspace_id, contact_id, booking_id, hours=26)
    assert waits() == [(booking_id, 24, True)]
    move(workspace_id, contact_id, booking_id, hours=-28)
    assert (waits(), start_all()) == ([(booking_id, 20, True)], 0)

    move(workspace_id, contact_id, booking_id, hours=28)
    pass_time(hours=24)
    assert start_all() == 1
    assert len(runs_of(contact_id)) == 2
    assert waits() == [(booking_id, 24, True)]


def test_what_has_fired_goes_when_the_booking_begins(workspace_id: str, contact_id: str) -> None:
    book(workspace_id, contact_id, hours=2)
    start_all()

    pass_time(hours=2)

    assert start_all() == 1
    assert (waits(), len(runs_of(contact_id))) == ([], 1)


def test_what_is_left_to_the_fan_out_is_planned_there(
    workspace_id: str, contact_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(triggers, "ROUNDS", 0)
        booking_id = book(workspace_id, contact_id, hours=48)

    assert waits() == [(booking_id, 24, False)]


def test_an_event_whose_contact_is_erased_before_it_is_passed_on_plans_nothing(
    api: Api, contact_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    book(api.workspace_id, contact_id, hours=48)
    api.done(api.delete(f"contacts/{contact_id}"))
    rows("UPDATE events SET due_at = now(), fan_out_after = '' WHERE kind = 'booking.created' RETURNING 1")

    apply(api.workspace_id)

    assert one("SELECT count(*) FROM events WHERE due_at IS NOT NULL") == 0
    assert waits() == []


def test_a_booking_whose_contact_is_merged_before_its_event_is_passed_on_is_planned(
    api: Api, contact_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept_id, starts = make_contact(api.workspace_id), datetime.now(UTC) + timedelta(hours=48)
    times = {"starts_at": starts.isoformat(), "ends_at": (starts + timedelta(hours=1)).isoformat()}
    with monkeypatch.context() as patched:
        patched.setattr(triggers, "ROUNDS", 0)
        accept(api.workspace_id, "bookings.create", {"contact_id": contact_id, "title": "Cut", **times}, "bkg_1")
        writes.work(api.workspace_id)
    assert unfollowed() == 1
    merge(api.workspace_id, kept_id, contact_id)  # the booking and its event follow later

    api.apply()

    assert unfollowed() == 0
    assert waits() == [("bkg_1", 24, False)]


def test_bookings_of_other_workspaces_do_not_wait(others: Api) -> None:
    book(others.workspace_id, make_contact(others.workspace_id), hours=48)

    assert waits() == []


def test_only_workspaces_with_such_triggers_pay_for_them(others: Api, statements: list[str]) -> None:
    contact_id = make_contact(others.workspace_id)
    make_automation(others.workspace_id, definition({"event": "tag.added"}))
    statements.clear()

    book(others.workspace_id, contact_id, hours=48)

    assert not [each for each in statements if "waiting_starts" in each or "timed_triggers" in each]


def test_statements_grow_neither_with_bookings_nor_with_triggers(
    workspace_id: str, contact_id: str, statements: list[str]
) -> None:
    def cost(name: str, size: int) -> int:
        times = {"starts_at": "2099-07-20T22:30:00Z", "ends_at": "2099-07-20T23:30:00Z"}
        for number in range(size):
            payload = {"contact_id": contact_id, "title": "Haircut", **times}
            accept(workspace_id, "bookings.create", payload, f"bkg_{name}_{number}")
        statements.clear()
        apply(workspace_id)
        # How often a mailbox is looked at again depends on how long its mail has waited.
        return len([each for each in statements if "head.waited" not in each])

    cost("first", 1)  # reads what this process has not seen
    costs = [cost("a", 2), cost("b", 30)]
    make_automation(workspace_id, definition(*(DAY_BEFORE | {"seconds": HOUR * each} for each in range(1, 21))))
    cost("c", 1)
    costs.append(cost("d", 30))

    assert len(set(costs)) == 1, costs
    assert one("SELECT count(*) FROM waiting_starts") == 1 + 2 + 30 + 21 + 21 * 30

"""Start scans: what exists already when a trigger by time is published, and what waits once it is gone."""

from __future__ import annotations

import pytest

from app.database import rows
from app.domain.triggers import start_scans
from tests.app.domain.triggers.timing import (
    DAY_BEFORE,
    HOUR,
    book,
    pass_time,
    publish,
    publish_again,
    scan_all,
    start_all,
    waits,
)
from tests.app.domain.triggers.triggering import make_contact
from tests.automations import runs_of
from tests.cast import Api, accept, apply, elsewhere, in_threads, one

HOUR_BEFORE = DAY_BEFORE | {"seconds": HOUR}


def test_publishing_finds_the_bookings_whose_time_is_to_come(
    api: Api, contact_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(start_scans, "PART", 2)
    later = [book(api.workspace_id, contact_id, hours=48) for _ in range(5)]
    soon = book(api.workspace_id, contact_id, hours=2)
    book(api.workspace_id, contact_id, hours=-2)
    accept(api.workspace_id, "bookings.cancel", {}, book(api.workspace_id, contact_id, hours=48))
    apply(api.workspace_id)

    publish(api)
    scan_all()

    assert waits() == [*((each, 24, False) for each in later), (soon, 2, True)]
    assert start_all() == 0
    pass_time(hours=24)
    assert start_all() == 6
    assert len(runs_of(contact_id)) == 5


def test_a_part_is_bounded_and_a_scan_goes_on_where_it_was(
    api: Api, contact_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(start_scans, "PART", 2)
    monkeypatch.setattr(start_scans, "SLICE_SECONDS", 0)
    for _ in range(5):
        book(api.workspace_id, contact_id, hours=48)
    publish(api)

    assert [start_scans.go_on() for _ in range(4)] == [2, 2, 1, 0]
    assert len(waits()) == 5
    assert not rows(f"SELECT 1 WHERE {start_scans.IS_ANY_UNDER_WAY}")


def test_two_schedulers_plan_each_once(api: Api, contact_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start_scans, "PART", 2)
    for _ in range(9):
        book(api.workspace_id, contact_id, hours=48)
    publish(api)

    in_threads([start_scans.go_on] * 3)
    scan_all()

    assert [(hours, has_fired) for _, hours, has_fired in waits()] == [(24, False)] * 9


def test_a_transaction_that_does_not_know_the_trigger_is_waited_for(api: Api, contact_id: str) -> None:
    make = """
        INSERT INTO bookings (id, workspace_id, contact_id, title, starts_at, ends_at, created_at)
        VALUES ('bkg_late', %s, %s, 'Late', now() + interval '48 hours', now() + interval '49 hours', now())
        RETURNING 1
    """
    with elsewhere(lambda: rows(make, (api.workspace_id, contact_id))):
        publish(api)
        assert start_scans.go_on() == 0
        assert waits() == []

    scan_all()
    assert waits() == [("bkg_late", 24, False)]


def test_what_was_made_and_started_meanwhile_is_not_started_again(api: Api, contact_id: str) -> None:
    publish(api)
    book(api.workspace_id, contact_id, hours=25)
    pass_time(hours=1)
    rows("UPDATE timed_triggers SET since = now() - interval '2 hours' RETURNING 1")
    start_all()

    scan_all()

    assert (start_all(), len(runs_of(contact_id))) == (0, 1)


def test_a_new_version_keeps_what_waits_for_a_trigger_that_it_has_too(api: Api, contact_id: str) -> None:
    automation_id = publish(api)
    waiting, started = (book(api.workspace_id, contact_id, hours=hours) for hours in (48, 3))
    start_all()

    publish_again(api, automation_id, DAY_BEFORE, HOUR_BEFORE)
    scan_all()
    start_all()

    assert sorted(waits()) == [(waiting, 24, False), (waiting, 47, False), (started, 2, False), (started, 3, True)]
    assert len(runs_of(contact_id)) == 1


def test_a_new_version_ends_what_waits_for_a_trigger_that_it_does_not_have(
    api: Api, contact_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(start_scans, "PART", 2)
    automation_id = publish(api)
    booking_ids = [book(api.workspace_id, contact_id, hours=48) for _ in range(5)]

    publish_again(api, automation_id, HOUR_BEFORE)
    scan_all()

    assert waits() == [(each, 47, False) for each in booking_ids]
    assert one("SELECT count(*) FROM timed_triggers") == 1


@pytest.mark.parametrize("end", ["unpublish", "delete"])
def test_an_automation_that_ends_leaves_nothing_that_waits(api: Api, contact_id: str, end: str) -> None:
    automation_id = publish(api)
    book(api.workspace_id, contact_id, hours=48)

    path = f"automations/{automation_id}"
    api.done(api.delete(path) if end == "delete" else api.post(f"{path}/unpublish"))
    scan_all()

    assert (waits(), one("SELECT count(*) FROM timed_triggers")) == ([], 0)


def test_one_that_is_published_again_begins_anew(api: Api, contact_id: str) -> None:
    automation_id = publish(api)
    booking_id = book(api.workspace_id, contact_id, hours=48)
    api.done(api.post(f"automations/{automation_id}/unpublish"))
    late_id = book(api.workspace_id, contact_id, hours=47)

    api.done(api.post(f"automations/{automation_id}/publish"))
    scan_all()

    assert waits() == [(booking_id, 24, False), (late_id, 23, False)]


def test_workspaces_share_a_slice(api: Api, contact_id: str, others: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start_scans, "PART", 2)
    for _ in range(39):
        book(api.workspace_id, contact_id, hours=48)
    their_id = book(others.workspace_id, make_contact(others.workspace_id), hours=48)
    publish(api)
    publish(api, HOUR_BEFORE)
    publish(others)

    monkeypatch.setattr(start_scans, "SLICE_SECONDS", 0)
    # Ours has 40 parts to do. Each turn is drawn by lot between the two.
    for _ in range(32):
        start_scans.go_on()

    assert their_id in {booking_id for booking_id, *_ in waits()}


def test_a_workspace_has_a_bounded_number_of_such_triggers(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start_scans, "MOST_TIMED", 2)
    monkeypatch.setattr("app.domain.automations.publications.MOST_TIMED", 2)
    first = publish(api)
    draft = api.automation(definition={"triggers": [DAY_BEFORE, HOUR_BEFORE], "steps": []})["id"]

    refused = api.done(api.post(f"automations/{draft}/publish"))

    assert (refused["status"], refused["problem"]["type"].rpartition("/")[2]) == ("failed", "conflict")
    publish_again(api, first, HOUR_BEFORE)
    api.done(api.post(f"automations/{first}/unpublish"))
    assert api.done(api.post(f"automations/{draft}/publish"))["status"] == "succeeded"

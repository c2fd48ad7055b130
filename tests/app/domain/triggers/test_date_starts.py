"""Triggers by the dates of contacts: planned as contacts change, found by scans, started once a year."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from functools import partial
from typing import Any

import pytest

from app.database import rows, transaction
from app.domain.triggers import batches, dates, due_starts, start_scans
from tests.app.domain.triggers.timing import definition, publish, scan_all, start_all
from tests.app.domain.triggers.triggering import make_contact
from tests.automations import make_automation, runs_of
from tests.cast import Api, all_of, in_threads, one

pytestmark = pytest.mark.usefixtures("one_day")

BIRTHDAY = {"date": "contact.custom_fields.birthday", "every": "year", "at": "00:00"}
TODAY = datetime.now(UTC).date()
THIS_YEAR = datetime.combine(TODAY, time(), UTC)
TOMORROW = THIS_YEAR + timedelta(days=1)


def born(at: datetime) -> dict[str, Any]:
    return {"custom_fields": {"birthday": f"1992-{at:%m-%d}"}}


def waits() -> list[datetime | None]:
    return all_of("SELECT at FROM waiting_starts ORDER BY at, id")


def make_due(at: datetime = THIS_YEAR) -> None:
    """Has all that waits wait for a time of today that has passed."""
    rows("UPDATE waiting_starts SET at = %s RETURNING 1", (at,))


def test_a_contact_with_the_date_waits(workspace_id: str) -> None:
    make_automation(workspace_id, definition(BIRTHDAY))

    make_contact(workspace_id, **born(TOMORROW))
    make_contact(workspace_id, custom_fields={"birthday": ""})
    make_contact(workspace_id)

    assert waits() == [TOMORROW]


@pytest.mark.parametrize("is_scanned", [True, False])
def test_a_date_that_cannot_be_read_is_told_until_it_can(api: Api, is_scanned: bool) -> None:
    if is_scanned:
        contact = api.contact(external_id="ada", custom_fields={"birthday": "31.02.1990"})
        automation_id = publish(api, BIRTHDAY, name="Congratulate")
        scan_all()
    else:
        automation_id = publish(api, BIRTHDAY, name="Congratulate")
        contact = api.contact(external_id="ada", custom_fields={"birthday": "31.02.1990"})

    [warning] = api.get(f"automations/{automation_id}").json["data"]["warnings"]
    told = f"1 contact has a 'birthday' that is no date, so nothing starts for them, such as {contact['id']}."
    assert (warning["pointer"], warning["detail"]) == ("/definition/triggers/0", told)
    assert dates.unreadable_of_contact(contact["id"]) == {"birthday": ["Congratulate"]}
    assert start_all() == 0

    api.contact(external_id="ada", custom_fields={"birthday": f"{TOMORROW:%d.%m.}1990"})

    assert (waits(), dates.unreadable_of_automation(automation_id)) == ([TOMORROW], [])
    assert dates.unreadable_of_contact(contact["id"]) == {}
    api.contact(external_id="ada", custom_fields={"birthday": 1990})
    api.contact(external_id="ada", custom_fields={"birthday": None})
    assert waits() == []


def test_dates_that_cannot_be_read_are_counted_up_to_a_limit(api: Api, monkeypatch: Any) -> None:
    monkeypatch.setattr(dates, "MOST_COUNTED", 2)
    automation_id = publish(api, BIRTHDAY, BIRTHDAY | {"at": "10:00"})
    for _ in range(3):
        make_contact(api.workspace_id, custom_fields={"birthday": "soon"})
    scan_all()

    assert [each.number for each in dates.unreadable_of_automation(automation_id)] == [2, 2]


def test_a_run_starts_once_a_year(workspace_id: str) -> None:
    automation_id = make_automation(workspace_id, definition(BIRTHDAY), reentry="every")
    contact_id = make_contact(workspace_id, **born(THIS_YEAR))
    [next_year] = waits()
    make_due()

    in_threads([start_all] * 3)
    start_all()  # each may have found that another held it
    assert start_all() == 0

    [run] = runs_of(contact_id)
    assert (run.automation_id, run.event_id, run.event["id"], run.event["kind"]) == (
        *(automation_id, None, None),
        "contact.date",
    )
    assert run.event["data"]["contact"]["id"] == contact_id
    assert waits() == [next_year]
    assert one("SELECT fired_for FROM waiting_starts") == TODAY


def test_one_that_another_scheduler_has_begun_meanwhile_is_not_begun_again(workspace_id: str) -> None:
    make_automation(workspace_id, definition(BIRTHDAY), reentry="every")
    contact_id = make_contact(workspace_id, **born(THIS_YEAR))
    make_due()
    [found] = rows("SELECT id, workspace_id, automation_id, key, contact_id FROM waiting_starts")
    due = due_starts._Due(*found)

    for _ in range(2):
        with transaction():
            then = partial(due_starts._read_further, [due])
            assert batches.run([partial(due_starts._start, due)], due.needs, then=then) == [None]

    assert len(runs_of(contact_id)) == 1


def test_a_date_that_changes_moves_what_waits_and_does_not_start_twice_in_a_year(api: Api) -> None:
    make_automation(api.workspace_id, definition(BIRTHDAY), reentry="every")
    contact_id = make_contact(api.workspace_id, **born(TOMORROW))

    api.done(api.patch(f"contacts/{contact_id}", born(TOMORROW + timedelta(days=1))))
    assert waits() == [TOMORROW + timedelta(days=1)]
    api.done(api.patch(f"contacts/{contact_id}", {"first_name": "Ada"}))
    assert waits() == [TOMORROW + timedelta(days=1)]

    api.done(api.patch(f"contacts/{contact_id}", born(THIS_YEAR)))
    make_due()
    start_all()
    api.done(api.patch(f"contacts/{contact_id}", born(TOMORROW)))
    [at] = waits()
    assert at is not None
    assert (at.year, len(runs_of(contact_id))) == (TODAY.year + 1, 1)

    api.done(api.patch(f"contacts/{contact_id}", {"custom_fields": {"birthday": None}}))
    assert waits() == [None]


def test_one_that_is_taken_away_waits_no_more(api: Api) -> None:
    make_automation(api.workspace_id, definition(BIRTHDAY))
    first, second = (make_contact(api.workspace_id, **born(TOMORROW)) for _ in range(2))

    api.done(api.patch(f"contacts/{first}", {"custom_fields": {"birthday": None}}))
    assert waits() == [TOMORROW]
    api.done(api.delete(f"contacts/{second}"))
    assert waits() == []


def test_a_change_of_the_contact_keeps_what_is_due(api: Api) -> None:
    make_automation(api.workspace_id, definition(BIRTHDAY))
    contact_id = make_contact(api.workspace_id, **born(THIS_YEAR))
    make_due()

    api.done(api.patch(f"contacts/{contact_id}", {"first_name": "Ada"}))
    start_all()

    assert len(runs_of(contact_id)) == 1


def test_a_date_of_once_starts_once(api: Api) -> None:
    make_automation(api.workspace_id, definition({"date": "contact.custom_fields.ends", "at": "00:00"}))
    contact_id = make_contact(api.workspace_id, custom_fields={"ends": f"{TODAY}"})
    assert waits() == []
    api.done(api.patch(f"contacts/{contact_id}", {"custom_fields": {"ends": f"{TOMORROW:%Y-%m-%d}"}}))
    assert waits() == [TOMORROW]

    rows("UPDATE contacts SET custom_fields = jsonb_build_object('ends', %s) RETURNING 1", (f"{TODAY}",))
    make_due()
    start_all()

    assert (waits(), len(runs_of(contact_id))) == ([None], 1)
    assert start_all() == 0


def test_the_clock_is_that_of_the_contact_or_of_the_workspace(api: Api) -> None:
    publish(api, BIRTHDAY | {"at": "12:00"})
    berlin = make_contact(api.workspace_id, timezone="Europe/Berlin", custom_fields={"birthday": "1992-01-15"})
    nowhere = make_contact(api.workspace_id, custom_fields={"birthday": "1992-01-15"})

    def hours() -> dict[str, int]:
        return dict(rows("SELECT contact_id, extract(hour FROM at AT TIME ZONE 'UTC')::int FROM waiting_starts"))

    assert hours() == {berlin: 11, nowhere: 12}

    api.done(api.patch(f"/api/v1/workspaces/{api.workspace_id}", {"timezone": "Asia/Tokyo"}))
    scan_all()
    assert hours() == {berlin: 11, nowhere: 3}
    api.done(api.patch(f"contacts/{nowhere}", {"timezone": "America/New_York"}))
    assert hours() == {berlin: 11, nowhere: 17}


def test_publishing_scans_the_contacts_in_parts(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start_scans, "PART", 2)
    monkeypatch.setattr(start_scans, "SLICE_SECONDS", 0)
    for number in range(5):
        make_contact(api.workspace_id, **(born(TOMORROW) if number % 2 == 0 else {}))

    publish(api, BIRTHDAY)

    assert [start_scans.go_on() for _ in range(4)] == [2, 2, 1, 0]
    assert waits() == [TOMORROW] * 3
    assert not rows(f"SELECT 1 WHERE {start_scans.IS_ANY_UNDER_WAY}")


def test_publishing_leaves_out_what_has_passed_today(api: Api) -> None:
    contact_id = make_contact(api.workspace_id, **born(THIS_YEAR))

    publish(api, BIRTHDAY)
    scan_all()
    start_all()

    [at] = waits()
    assert at is not None
    assert (at > TOMORROW, runs_of(contact_id)) == (True, [])


def test_a_merge_gives_the_date_to_the_contact_that_stays(api: Api) -> None:
    make_automation(api.workspace_id, definition(BIRTHDAY))
    kept, other = make_contact(api.workspace_id), make_contact(api.workspace_id, **born(TOMORROW))

    api.done(api.post(f"contacts/{kept}/merge", {"contact_id": other}))

    assert rows("SELECT contact_id, at FROM waiting_starts") == [(kept, TOMORROW)]


def test_unpublishing_ends_what_waits(api: Api) -> None:
    automation_id = publish(api, BIRTHDAY)
    make_contact(api.workspace_id, **born(TOMORROW))

    api.done(api.post(f"automations/{automation_id}/unpublish"))
    scan_all()

    assert (waits(), one("SELECT count(*) FROM timed_triggers")) == ([], 0)


def test_only_workspaces_with_such_triggers_pay_for_them(workspace_id: str, statements: list[str]) -> None:
    statements.clear()

    make_contact(workspace_id, **born(TOMORROW))

    assert not [each for each in statements if "waiting_starts" in each or "FROM workspaces" in each]

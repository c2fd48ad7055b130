"""A contact's timeline on a page."""

from __future__ import annotations

import json
import re

import pytest

from app import database
from app.lib import ids
from app.lib.json import timestamp
from app.outbound import answered
from tests.automations import carry_on
from tests.cast import Api, one
from tests.logs import MOST_STATEMENTS, NASTY, RTL, attempt
from tests.pages import Person


@pytest.fixture
def contact_id(api: Api) -> str:
    endpoint_id = api.endpoint(events=["contact.created"])
    automation_id = api.published({"id": "mark", "kind": "add_tag", "tag": "welcomed"}, name=NASTY)
    contact_id = str(api.contact(external_id="c-0", first_name=NASTY, last_name=RTL)["id"])
    attempt(endpoint_id, answered(302, b"", 5, target=NASTY))
    api.done(api.post(f"automations/{automation_id}/start", {"contact_id": contact_id}))
    carry_on(api.workspace_id)
    return contact_id


def test_everything_about_a_contact_is_in_one_column(owner: Person, contact_id: str) -> None:
    shown = owner.page(f"dashboard/contacts/{contact_id}")

    for table, place in (("events", "events"), ("deliveries", "deliveries"), ("runs", "runs")):
        for (identifier,) in database.rows(f"SELECT id FROM {table} WHERE contact_id = %s", (contact_id,)):
            assert f"/dashboard/{place}/{identifier}" in shown
    assert "#entry-1" in shown
    assert f"/dashboard/jobs/{one('SELECT job_id FROM runs')}" in shown
    assert RTL in shown


def test_a_delivery_says_when_it_arrived_or_how_it_is_now(owner: Person, contact_id: str) -> None:
    page = f"dashboard/contacts/{contact_id}?show=deliveries"
    assert 'made, now <span class="state' in owner.page(page)
    database.rows("UPDATE deliveries SET status = 'delivered', delivered_at = '2026-02-03T04:05:06Z'")

    assert re.search(r'made, <span class="state good">delivered</span> <time[^>]*2026-02-03T04:05:06', owner.page(page))


def test_a_range_of_time_leaves_out_what_was_before_and_after(owner: Person, contact_id: str) -> None:
    page = f"dashboard/contacts/{contact_id}"
    run_id = one("SELECT id FROM runs")
    began = timestamp(ids.time_of(run_id))

    since, until = owner.page(f"{page}?since={began}"), owner.page(f"{page}?until={began}")

    assert (f"runs/{run_id}" in since, f"runs/{run_id}" in until) == (True, False)
    for (event_id,) in database.rows("SELECT id FROM events WHERE kind = 'contact.created'"):
        assert (event_id in since, event_id in until) == (False, True)
    assert "Nothing of this kind or time" in owner.page(f"{page}?until=2026-01-01T00:00")
    assert owner.get("dashboard/contacts/con_01h455vb4pex5vsknk084sn02q?since=2026-01-01").status_code == 404


def test_what_others_wrote_is_escaped(owner: Person, contact_id: str) -> None:
    text = owner.get(f"dashboard/contacts/{contact_id}").text

    assert "<script>alert" not in text
    assert text.count("&lt;script&gt;alert") >= 3


def test_a_part_of_it_can_be_chosen(owner: Person, contact_id: str) -> None:
    shown = owner.page(f"dashboard/contacts/{contact_id}?show=deliveries")

    assert "/dashboard/deliveries/dlv_" in shown
    assert "/dashboard/events/evt_" not in shown
    assert "There is no such choice" in owner.page(f"dashboard/contacts/{contact_id}?show=lies")


def test_it_is_a_file_too(owner: Person, contact_id: str) -> None:
    entries = json.loads(owner.get(f"dashboard/contacts/{contact_id}?format=json").text)

    assert {"write", "event", "delivery", "run", "step"} == {entry["what"] for entry in entries}
    assert owner.get(f"dashboard/contacts/{contact_id}?format=csv").text.startswith("at,what,id")


def test_long_histories_are_paged(api: Api, owner: Person, contact_id: str) -> None:
    database.rows(
        "INSERT INTO deliveries (id, workspace_id, event_id, endpoint_id, kind, contact_id, due_at)"
        " SELECT 'dlv_01' || lpad(n::text, 24, '0'), %s, 'evt_none', 'whe_none', 'contact.created', %s, NULL"
        " FROM generate_series(1, 100) AS n",
        (api.workspace_id, contact_id),
    )

    shown = owner.page(f"dashboard/contacts/{contact_id}?show=deliveries")

    assert shown.count("/dashboard/deliveries/dlv_") == 50
    assert "Next page" in shown


def test_a_deleted_contact_keeps_what_has_no_data_of_theirs(api: Api, owner: Person, contact_id: str) -> None:
    database.rows("DELETE FROM contacts")

    assert "This contact was deleted." in owner.page(f"dashboard/contacts/{contact_id}")


def test_a_contact_without_history_says_so(api: Api, owner: Person) -> None:
    contact_id = api.contact(external_id="c-1")["id"]
    database.rows("DELETE FROM events")

    assert "Nothing is kept about this contact." in owner.page(f"dashboard/contacts/{contact_id}")


@pytest.mark.parametrize("given", ["x", "con_0", "%00", "con_01hzzzzzzzzzzzzzzzzzzzzzzz"])
def test_who_is_no_contact_is_not_there(owner: Person, given: str) -> None:
    assert owner.get(f"dashboard/contacts/{given}").status_code == 404


def test_another_workspace_sees_nothing(stranger: Person, others: Api, contact_id: str) -> None:
    assert stranger.get(f"dashboard/contacts/{contact_id}").status_code == 404
    assert stranger.get(f"/workspaces/{others.workspace_id}/dashboard/contacts/{contact_id}").status_code == 404


def test_the_page_takes_few_statements(support: Person, contact_id: str, statements: list[str]) -> None:
    support.visit()
    support.page(f"dashboard/contacts/{contact_id}")
    statements.clear()

    support.page(f"dashboard/contacts/{contact_id}")

    assert len(statements) <= MOST_STATEMENTS, statements

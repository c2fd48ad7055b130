"""The page of an event."""

from __future__ import annotations

import pytest

from app import database
from app.outbound import answered
from tests.cast import Api, one
from tests.logs import MOST_STATEMENTS, NASTY, RTL, attempt, delivery
from tests.pages import Person


@pytest.fixture
def event_id(api: Api) -> str:
    delivery(api, first_name=NASTY, last_name=RTL)
    return str(one("SELECT id FROM events"))


def test_an_event_shows_its_cause_its_body_and_its_deliveries(api: Api, owner: Person, event_id: str) -> None:
    job_id, contact_id, body = database.rows("SELECT job_id, contact_id, body FROM events")[0]

    shown = owner.page(f"dashboard/events/{event_id}")

    for text in (f"jobs/{job_id}", f"contacts/{contact_id}", one("SELECT id FROM deliveries"), bytes(body).decode()):
        assert text in shown
    assert "https://shop.example/hooks" in shown
    assert owner.get(f"dashboard/events/{event_id}/body").data == bytes(body)


def test_what_a_contact_wrote_is_escaped(owner: Person, event_id: str) -> None:
    assert "<script>alert" not in owner.get(f"dashboard/events/{event_id}").text


def test_an_event_that_nobody_wanted_says_so(api: Api, owner: Person) -> None:
    api.contact(external_id="c-1")

    assert "sent to no endpoint" in owner.page(f"dashboard/events/{one('SELECT id FROM events')}")


def test_an_event_is_sent_again_to_an_endpoint(api: Api, agent: Person, event_id: str) -> None:
    endpoint_id = api.endpoint("https://other.example/hooks", ["sale.recorded"])

    answer = agent.post(f"dashboard/events/{event_id}/resend", {"endpoint_id": endpoint_id})

    assert answer.status_code == 303
    assert answer.location.endswith(one("SELECT id FROM deliveries WHERE endpoint_id = %s", endpoint_id))
    assert "as this new delivery" in agent.page(answer.location)


@pytest.mark.parametrize("endpoint_id", ["", "whe_none", "<b>", "\0"])
def test_an_unknown_endpoint_is_a_problem_of_the_field(owner: Person, event_id: str, endpoint_id: str) -> None:
    answer = owner.post(f"dashboard/events/{event_id}/resend", {"endpoint_id": endpoint_id})

    assert answer.status_code == 422
    assert 'aria-invalid="true"' in answer.text


def test_a_stopped_endpoint_is_a_conflict(owner: Person, event_id: str) -> None:
    database.rows("UPDATE endpoints SET state = 'stopped'")
    fields = {"endpoint_id": one("SELECT id FROM endpoints")}

    answer = owner.post(f"dashboard/events/{event_id}/resend", fields)

    assert "is stopped. Enable it first." in owner.page(answer.location)


def test_an_event_without_its_body_is_shown_by_its_deliveries(api: Api, owner: Person, event_id: str) -> None:
    database.rows("DELETE FROM events")

    shown = owner.page(f"dashboard/events/{event_id}")

    assert "The body is no longer kept" in shown
    assert "Send it again" not in shown
    assert owner.get(f"dashboard/events/{event_id}/body").status_code == 404
    assert owner.post(f"dashboard/events/{event_id}/resend", {"endpoint_id": "x"}).status_code == 303


def test_another_workspace_sees_nothing(stranger: Person, others: Api, event_id: str) -> None:
    theirs = f"/workspaces/{others.workspace_id}/dashboard/events/{event_id}"

    assert stranger.get(f"dashboard/events/{event_id}").status_code == 404
    assert stranger.get(theirs).status_code == 404
    assert stranger.get(f"{theirs}/body").status_code == 404
    assert stranger.post(f"{theirs}/resend", {"endpoint_id": "x"}).status_code == 404


def test_an_event_cannot_be_sent_to_another_workspace(api: Api, owner: Person, others: Api, event_id: str) -> None:
    foreign_id = others.endpoint("https://others.example/hooks")

    assert owner.post(f"dashboard/events/{event_id}/resend", {"endpoint_id": foreign_id}).status_code == 422


@pytest.mark.parametrize("given", ["x", "evt_0", "%00"])
def test_what_is_no_event_is_not_there(owner: Person, given: str) -> None:
    assert owner.get(f"dashboard/events/{given}").status_code == 404


def test_the_page_takes_few_statements(api: Api, support: Person, event_id: str, statements: list[str]) -> None:
    attempt(one("SELECT id FROM endpoints"), answered(500, b"", 1))
    support.visit()
    support.page(f"dashboard/events/{event_id}")
    statements.clear()

    support.page(f"dashboard/events/{event_id}")

    assert len(statements) <= MOST_STATEMENTS, statements

"""Starting an automation by hand."""

from __future__ import annotations

import re

import pytest

from tests.app.web.automations.test_automation_pages import MARK, WAIT, run
from tests.automations import carry_on
from tests.cast import Api, all_of, one
from tests.pages import Person


def test_a_contact_is_found_and_started(api: Api, agent: Person) -> None:
    automation_id = api.published(MARK)
    contact_id = api.contact(external_id="c1", first_name="Ada", last_name="Lovelace")["id"]

    found = agent.page(f"automations/{automation_id}/start?q=lovel")
    assert contact_id in found
    answer = agent.post(f"automations/{automation_id}/start", {"contact_id": contact_id})

    assert answer.headers["Location"].endswith(one("SELECT id FROM runs"))
    assert "Type at least three" in agent.page(f"automations/{automation_id}/start?q=a")
    assert "No contact matches" in agent.page(f"automations/{automation_id}/start?q=nobody")


@pytest.mark.parametrize("contact_id", ["", "con_nobody", "con_01kaj5bd40e6rr3f5y2kq0w9xz"])
def test_nobody_is_started_who_is_not_there(api: Api, agent: Person, contact_id: str) -> None:
    automation_id = api.published(MARK)

    answer = agent.post(f"automations/{automation_id}/start", {"contact_id": contact_id})

    assert "no such contact" in agent.page(answer.headers["Location"])
    assert all_of("SELECT id FROM runs") == []


def test_a_draft_cannot_be_started(api: Api, owner: Person) -> None:
    automation_id = api.automation(MARK)["id"]
    contact_id = api.contact(external_id="c1")["id"]

    assert "It is not published." in owner.page(f"automations/{automation_id}/start")
    answer = owner.post(f"automations/{automation_id}/start", {"contact_id": contact_id})
    assert answer.status_code == 303
    assert all_of("SELECT id FROM runs") == []


def test_a_list_is_checked_then_started_with_an_exact_account(api: Api, owner: Person) -> None:
    automation_id = api.published(WAIT, reentry="once")
    by_email = api.contact(email="ada@example.com")["id"]
    by_own = api.contact(external_id="c2")["id"]
    by_id = api.contact(external_id="c3")["id"]
    api.done(api.post(f"automations/{automation_id}/start", {"contact_id": by_id}))
    lines = f"ADA@example.com\r\nc2\r\n{by_id}\r\n\r\nnobody@example.com\r\nc2\r\n"

    checked = owner.post(f"automations/{automation_id}/start/list", {"lines": lines}).text
    assert "<strong>3</strong> contacts are" in checked
    assert "<strong>1</strong> line names" in checked
    assert "nobody@example.com" in checked
    contact_ids = re.search(r'name="contact_ids" value="([^"]+)"', checked)
    assert contact_ids
    assert set(contact_ids[1].split()) == {by_email, by_own, by_id}

    begun = owner.post(f"automations/{automation_id}/start/list/begin", {"contact_ids": contact_ids[1]})

    shown = owner.page(begun.headers["Location"])
    assert "2 runs have begun" in shown
    assert "1 contact may not enter again" in shown
    carry_on(api.workspace_id)
    assert len(all_of("SELECT id FROM runs")) == 3


def test_each_contact_of_a_long_list_gets_one_run(api: Api, owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.domain.automations.listed_starts.PART", 2)
    automation_id = api.published(WAIT)
    contacts = [api.contact(external_id=f"c{number}")["id"] for number in range(5)]
    gone = "con_01kaj5bd40e6rr3f5y2kq0w9xz"

    fields = {"contact_ids": " ".join([*contacts, contacts[0], gone])}
    begun = owner.post(f"automations/{automation_id}/start/list/begin", fields)

    shown = owner.page(begun.headers["Location"])
    assert "5 runs have begun" in shown
    assert "1 contact is gone" in shown
    assert sorted(all_of("SELECT contact_id FROM runs")) == sorted(contacts)


@pytest.mark.parametrize(
    ("lines", "said"), [("", "at least one line"), ("\n".join(map(str, range(1001))), "at most 1,000")]
)
def test_a_list_that_is_empty_or_too_long_is_refused(api: Api, owner: Person, lines: str, said: str) -> None:
    answer = owner.post(f"automations/{api.published(MARK)}/start/list", {"lines": lines})

    assert answer.status_code == 422
    assert said in answer.text


def test_agents_start_one_contact_but_no_lists(api: Api, agent: Person) -> None:
    automation_id = api.published(MARK)

    assert "For a list" not in agent.page(f"automations/{automation_id}/start")
    assert agent.post(f"automations/{automation_id}/start/list", {"lines": "x"}).status_code == 403


def test_the_account_of_another_automation_is_not_shown(api: Api, owner: Person) -> None:
    automation_id, other = api.published(WAIT), api.published(WAIT, name="Other")
    contact_id = api.contact(external_id="c1")["id"]
    begun = owner.post(f"automations/{automation_id}/start/list/begin", {"contact_ids": contact_id})

    assert "have begun" not in owner.page(begun.headers["Location"].replace(automation_id, other))
    assert run(api, other, 1)

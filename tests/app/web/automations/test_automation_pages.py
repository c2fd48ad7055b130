"""Automations on pages: the list, the picture with its counts, and publishing."""

from __future__ import annotations

import re
import uuid
from typing import Any

from app import database
from app.domain.automations import counts
from tests.automations import carry_on
from tests.cast import Api
from tests.logs import NASTY, RTL
from tests.pages import Person

WAIT = {"id": "later", "kind": "wait", "seconds": 86_400}
MARK = {"id": "mark", "kind": "add_tag", "tag": "welcomed"}
FAIL = {"id": "talk", "kind": "send_message", "text": "Hello"}  # nobody can be written to
IS_VIP = {"field": "contact.tags", "is": "contains", "value": "vip"}


def run(api: Api, automation_id: str, number: int = 1, **contact: Any) -> list[str]:
    """Starts the automation for new contacts, carries the runs on, and returns their identifiers."""
    run_ids = []
    for _ in range(number):
        contact_id = api.contact(external_id=uuid.uuid4().hex, **contact)["id"]
        job = api.done(api.post(f"automations/{automation_id}/start", {"contact_id": contact_id}))
        run_ids.append(str(job["resource"]["id"]))
    carry_on(api.workspace_id)
    return run_ids


def test_without_automations_the_list_says_what_one_is(owner: Person, agent: Person) -> None:
    assert "An automation is a list of steps" in owner.page("automations")
    assert "New automation" in owner.page("automations")
    assert "New automation" not in agent.page("automations")


def test_the_list_has_states_and_counts_and_is_searched_by_name(api: Api, owner: Person) -> None:
    automation_id = api.published(WAIT, name=NASTY)
    api.published(MARK, name=RTL)
    run(api, automation_id, 2)

    shown = owner.page("automations")

    for text in (NASTY, RTL, "published", f"automations/{automation_id}"):
        assert text in shown
    assert re.search(rf"automation_id={automation_id}[^>]*>2<", shown)
    assert RTL not in owner.page(f"automations?q={NASTY[:8]}")
    assert "No automation has this in its name" in owner.page("automations?q=nothing+like+it")


def test_a_new_automation_is_a_draft_without_steps(api: Api, owner: Person) -> None:
    answer = owner.post("automations/new", {"name": "  Welcome  "})

    assert answer.status_code == 303
    assert answer.headers["Location"].endswith("/edit")
    shown = owner.page(answer.headers["Location"].removesuffix("/edit"))
    assert "It has no steps yet" in shown
    assert "Only when it is started by hand" in shown
    assert api.get("automations").json["data"][0]["name"] == "Welcome"


def test_a_name_is_needed(owner: Person) -> None:
    answer = owner.post("automations/new", {"name": " "})

    assert answer.status_code == 422
    assert 'id="h-name"' in answer.text


def test_the_picture_has_the_counts_of_each_step_and_leads_to_exactly_those_runs(api: Api, owner: Person) -> None:
    branch = {"id": "vip", "kind": "branch", "if": IS_VIP, "then": [WAIT], "else": [FAIL]}
    automation_id = api.published(MARK, branch)
    waiting = run(api, automation_id, 2, tags=["vip"])
    failed = run(api, automation_id, 3)
    run(api, api.published(WAIT, name="Another"))

    for _ in range(2):  # before and after what has been counted is added up
        shown = owner.page(f"automations/{automation_id}")
        assert "5 in" in shown
        assert "40 %" in shown
        assert "60 %" in shown
        for number, word, expected in ((2, "waiting", waiting), (3, "failed", failed)):
            link = re.search(rf'href="([^"]+)"[^>]*>{number} {word}<', shown)
            assert link, word
            listed = owner.page(link[1])
            assert f"{number} runs<" in listed
            assert set(re.findall(r"dashboard/runs/(run_\w+)", listed)) == set(expected)
        while counts.fold():
            pass


def test_the_runs_at_a_step_are_those_of_a_version_and_a_period(api: Api, owner: Person) -> None:
    automation_id = api.published(WAIT)
    run(api, automation_id)
    api.done(api.post(f"automations/{automation_id}/publish"))
    [run_id] = run(api, automation_id)
    path = f"dashboard/runs?automation_id={automation_id}&step=later&at=waiting"

    assert set(re.findall(r"runs/(run_\w+)", owner.page(f"{path}&version=2"))) == {run_id}
    assert "No run matches" in owner.page(f"{path}&version=2&since=2099-01-01T00:00:00")
    assert "No run matches" in owner.page(f"{path}&version=3")
    assert "does not go with the other filters" in owner.page(f"{path}&version=2&status=failed")
    assert "1 in" in owner.page(f"automations/{automation_id}?version=1&period=day")


def test_a_refused_publication_says_why_at_the_step(api: Api, owner: Person) -> None:
    automation_id = api.published(MARK)
    other = api.published(MARK, name="Other")
    start = {"id": "next", "kind": "start_automation", "automation_id": other}
    api.done(api.patch(f"automations/{automation_id}", {"definition": {"steps": [MARK, start]}}))
    api.done(api.delete(f"automations/{other}"))

    answer = owner.post(f"automations/{automation_id}/publish")

    assert answer.status_code == 422
    assert "What is wrong stands at its steps" in answer.text
    assert "There is no such automation in this workspace." in answer.text
    assert "publish?" not in answer.text  # nobody can go where the form was sent


def test_it_is_published_paused_resumed_and_unpublished(api: Api, owner: Person, agent: Person) -> None:
    automation_id = api.published(MARK)
    path = f"automations/{automation_id}"

    for verb, status in (
        ("pause", "paused"),
        ("resume", "published"),
        ("unpublish", "unpublished"),
        ("publish", "published"),
    ):
        assert owner.post(f"{path}/{verb}").status_code == 303
        assert api.get(path).json["data"]["status"] == status
        assert agent.post(f"{path}/{verb}").status_code == 403


def test_steps_are_folded_as_the_address_says(api: Api, owner: Person) -> None:
    branch = {"id": "vip", "kind": "branch", "if": IS_VIP, "then": [WAIT], "else": [FAIL]}
    path = f"automations/{api.published(MARK, branch)}"

    assert "Wait 1 day" in owner.page(path)
    assert "Wait 1 day" not in owner.page(f"{path}?turn=vip")
    assert "Show 2 steps inside" in owner.page(f"{path}?fold=0")
    assert "Wait 1 day" in owner.page(f"{path}?fold=0&turn=vip")
    assert "Wait 1 day" in owner.page(f"{path}?fold=<&turn=..&view=x&period=y&version=z")


def test_a_page_costs_the_same_statements_however_large_the_automation(
    api: Api, owner: Person, statements: list[str]
) -> None:
    small = api.published(MARK)
    steps = [{"id": f"b{n}", "kind": "branch", "if": IS_VIP, "then": [WAIT | {"id": f"w{n}"}]} for n in range(100)]
    large = api.published(*steps, name="Large")
    run(api, large, 3, tags=["vip"])
    for path in (small, large):
        owner.page(f"automations/{path}")  # the program is kept from now on

    def cost(path: str) -> int:
        before = len(statements)
        owner.page(path)
        return len(statements) - before

    assert cost(f"automations/{large}") == cost(f"automations/{small}") <= 8


def test_only_counted_runs_are_in_the_counts(api: Api, owner: Person) -> None:
    automation_id = api.published(WAIT)
    run(api, automation_id)
    database.rows("UPDATE runs SET finished_at = now(), status = 'cancelled', waits_for = NULL")

    assert "1 in" in owner.page(f"automations/{automation_id}")

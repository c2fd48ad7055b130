"""Versions on pages: who published them, what differs, restoring one, and moving runs."""

from __future__ import annotations

from app.models.runs import Run
from tests.app.web.automations.test_automation_pages import MARK, WAIT, run
from tests.cast import Api, all_of
from tests.pages import Person


def republished(api: Api, automation_id: str, *steps: dict[str, object]) -> None:
    """Publishes these steps as the next version."""
    api.done(api.patch(f"automations/{automation_id}", {"definition": {"steps": list(steps)}}))
    api.done(api.post(f"automations/{automation_id}/publish"))


def test_the_versions_say_who_published_them_and_what_is_under_way(api: Api, owner: Person) -> None:
    automation_id = api.published(WAIT)
    run(api, automation_id, 2)
    owner.post(f"automations/{automation_id}/publish")

    shown = owner.page(f"automations/{automation_id}/versions")

    assert owner.email in shown
    assert "Version 2" in shown
    assert '<td class="number">2</td>' in shown
    assert "versions/move?version=1" in shown
    assert "move?version=2" not in shown


def test_versions_are_compared_in_words_and_in_the_picture(api: Api, owner: Person) -> None:
    automation_id = api.published(MARK, WAIT)
    republished(api, automation_id, WAIT | {"seconds": 3600}, {"id": "new", "kind": "stop"})

    shown = owner.page(f"automations/{automation_id}/versions/compare?to=2")

    for text in (">1 day</del>", ">1 hour</ins>", ">New</span>", ">Removed</span>", "Add the tag “welcomed”"):
        assert text in shown, text
    same = owner.page(f"automations/{automation_id}/versions/compare?from=2&to=draft")
    assert "Nothing: the steps and triggers are the same." in same
    assert owner.get(f"automations/{automation_id}/versions/compare?from=9").status_code == 404


def test_a_version_is_restored_into_the_draft(api: Api, owner: Person, agent: Person) -> None:
    automation_id = api.published(MARK)
    republished(api, automation_id, WAIT)

    assert agent.post(f"automations/{automation_id}/versions/restore", {"version": "1"}).status_code == 403
    answer = owner.post(f"automations/{automation_id}/versions/restore", {"version": "1"})

    assert "Version 1 is the draft again" in owner.page(answer.headers["Location"])
    assert api.get(f"automations/{automation_id}").json["data"]["definition"]["steps"] == [MARK]
    assert owner.post(f"automations/{automation_id}/versions/restore", {"version": "x"}).status_code == 422


def test_runs_are_moved_after_their_exact_number_is_shown(api: Api, owner: Person) -> None:
    automation_id = api.published(WAIT, MARK)
    run(api, automation_id, 2)
    republished(api, automation_id, WAIT, MARK | {"tag": "other"})

    asked = owner.page(f"automations/{automation_id}/versions/move?version=1")
    assert "<strong>2</strong> runs wait" in asked
    assert "<strong>0</strong> others keep" in asked
    assert owner.post(f"automations/{automation_id}/versions/move", {"version": "1"}).status_code == 303

    assert all_of("SELECT version FROM runs") == [2, 2]
    assert "2 waiting" in owner.page(f"automations/{automation_id}")
    assert {each.step for each in Run.select()} == {"later"}
    assert "Nothing can be moved here" in owner.page(f"automations/{automation_id}/versions/move?version=2")

"""Forms of an automation: settings, cancelling its runs, and deleting it."""

from __future__ import annotations

from tests.app.web.automations.test_automation_pages import MARK, WAIT, run
from tests.cast import Api, all_of
from tests.pages import Person


def test_name_and_reentry_are_changed(api: Api, owner: Person) -> None:
    automation_id = api.published(MARK)

    answer = owner.post(f"automations/{automation_id}/settings", {"name": " New name ", "reentry": "once"})

    assert answer.status_code == 303
    changed = api.get(f"automations/{automation_id}").json["data"]
    assert (changed["name"], changed["reentry"]) == ("New name", "once")
    owner.post(f"automations/{automation_id}/settings", {"name": "New name", "reentry": ""})
    assert api.get(f"automations/{automation_id}").json["data"]["reentry"] is None


def test_what_cannot_be_is_refused_and_kept_in_the_form(api: Api, owner: Person) -> None:
    automation_id = api.published(MARK)

    answer = owner.post(f"automations/{automation_id}/settings", {"name": "Typed", "reentry": "never"})

    assert answer.status_code == 422
    assert 'value="Typed"' in answer.text
    assert owner.post(f"automations/{automation_id}/settings", {"name": "", "reentry": ""}).status_code == 422


def test_runs_are_counted_before_they_are_cancelled(api: Api, owner: Person) -> None:
    automation_id = api.published(WAIT)
    run(api, automation_id, 3)

    asked = owner.page(f"automations/{automation_id}/cancel-runs?status=waiting")
    assert "<strong>3</strong> runs are chosen" in asked
    assert "<strong>0</strong> runs" in owner.page(f"automations/{automation_id}/cancel-runs?status=held")
    assert "<strong>0</strong> runs" in owner.page(f"automations/{automation_id}/cancel-runs?until=2020-01-01T00:00")
    owner.post(f"automations/{automation_id}/cancel-runs", {"status": "held"})
    assert set(all_of("SELECT status FROM runs")) == {"waiting"}
    owner.post(f"automations/{automation_id}/cancel-runs", {"status": "waiting"})

    assert set(all_of("SELECT status FROM runs")) == {"cancelled"}


def test_a_time_that_is_none_cancels_nothing(api: Api, owner: Person) -> None:
    automation_id = api.published(WAIT)
    run(api, automation_id)

    assert owner.post(f"automations/{automation_id}/cancel-runs", {"since": "soon"}).status_code == 422
    assert owner.post(f"automations/{automation_id}/cancel-runs", {"status": "whatever"}).status_code == 422

    assert all_of("SELECT status FROM runs") == ["waiting"]


def test_an_automation_is_deleted_with_what_it_affects(api: Api, owner: Person, agent: Person) -> None:
    automation_id = api.published(WAIT)
    run(api, automation_id, 2)

    assert "2 runs under way are cancelled" in owner.page(f"automations/{automation_id}/settings")
    assert "Delete the automation" not in agent.page(f"automations/{automation_id}/settings")
    assert owner.post(f"automations/{automation_id}/delete").status_code == 303

    assert owner.get(f"automations/{automation_id}").status_code == 404
    assert set(all_of("SELECT status FROM runs")) == {"cancelled"}

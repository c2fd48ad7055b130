"""Many runs at once over the API: moved to the published version. Cancelling them is in test_runs.py."""

from __future__ import annotations

from typing import Any

import pytest

from app.models.runs import Run
from tests.automations import carry_on
from tests.cast import Api

TAG = {"id": "tag", "kind": "add_tag", "tag": "seen"}
WAIT = {"id": "pause", "kind": "wait", "seconds": 60}
ASK = {"id": "more", "kind": "wait", "seconds": 3_600}


def publish(api: Api, automation_id: str, *steps: dict[str, Any]) -> None:
    api.done(api.patch(f"automations/{automation_id}", {"definition": {"triggers": [], "steps": list(steps)}}))
    assert api.done(api.post(f"automations/{automation_id}/publish"))["status"] == "succeeded"


def start(api: Api, automation_id: str) -> str:
    body = {"contact_id": api.contact(external_id=f"c{Run.select().count()}")["id"]}
    run_id = api.done(api.post(f"automations/{automation_id}/start", body))["resource"]["id"]
    carry_on(api.workspace_id)
    return str(run_id)


def versions(*run_ids: str) -> list[int]:
    return [Run.get_by_id(each).version for each in run_ids]


def test_runs_that_wait_in_a_step_of_both_versions_go_on_with_the_published_one(api: Api) -> None:
    automation_id = api.published(definition={"triggers": [], "steps": [WAIT, TAG]})
    pausing = start(api, automation_id)
    publish(api, automation_id, ASK)
    gone = start(api, automation_id)
    publish(api, automation_id, WAIT)
    path = f"automations/{automation_id}/move-runs"

    counted = [api.post(path, {"from_version": number, "dry_run": True}) for number in (1, 2)]
    assert [(each.status_code, each.json["data"]) for each in counted] == [
        (200, {"count": 1, "kept": 0}),
        (200, {"count": 0, "kept": 1}),
    ]
    assert versions(pausing, gone) == [1, 2]

    jobs = [api.done(api.post(path, {"from_version": number})) for number in (1, 2)]
    assert [(job["status"], job["resource"]["id"]) for job in jobs] == [("succeeded", automation_id)] * 2
    assert versions(pausing, gone) == [3, 2]


@pytest.mark.parametrize(
    "body",
    [None, {}, {"from_version": 0}, {"from_version": "1"}, {"from_version": 1, "dry_run": "yes"}, {"version": 1}],
)
def test_it_needs_a_version(api: Api, body: Any) -> None:
    assert api.post(f"automations/{api.published()}/move-runs", body).status_code in (400, 422)


@pytest.mark.parametrize(("number", "status"), [(1, 422), (2, 404)])
def test_the_version_must_be_another_one_that_there_is(api: Api, number: int, status: int) -> None:
    path = f"automations/{api.published()}/move-runs"

    counted = api.post(path, {"from_version": number, "dry_run": True})
    job = api.done(api.post(path, {"from_version": number}))

    assert counted.status_code == status
    assert (job["status"], job["problem"]["status"]) == ("failed", status)


def test_one_that_is_not_published_has_no_version_to_go_on_with(api: Api) -> None:
    answer = api.post(f"automations/{api.automation()['id']}/move-runs", {"from_version": 1})

    assert (answer.status_code, answer.json["type"].rpartition("/")[2]) == (409, "automation-not-published")

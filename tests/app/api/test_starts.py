"""Starting an automation for a contact, and who is kept out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from app import database
from app.domain import writes
from app.models.runs import Run
from tests.cast import Api, all_of, event_kinds, one, row_counts, rung_on, working

STEPS = [{"id": "mark", "kind": "add_tag", "tag": "welcomed"}]
BODY = {"name": "Welcome", "definition": {"steps": STEPS}}


@pytest.fixture
def contact_id(api: Api) -> str:
    return str(api.contact(email="ada@example.com")["id"])


def start(api: Api, automation_id: str, contact_id: str, **body: Any) -> Any:
    return api.post(f"automations/{automation_id}/start", {"contact_id": contact_id, **body})


def started(api: Api, automation_id: str, contact_id: str, **body: Any) -> str:
    """The run of a start that has taken effect."""
    job = api.done(start(api, automation_id, contact_id, **body))
    assert job["status"] == "succeeded", job
    return str(job["resource"]["id"])


def show(api: Api, run_id: str) -> dict[str, Any]:
    return dict(api.get(f"runs/{run_id}").json["data"])


def finish(run_id: str) -> None:
    """Ends the run as the engine does, as far as a next start sees it."""
    database.rows("UPDATE runs SET status = 'completed', finished_at = now(), due_at = NULL WHERE id = %s", (run_id,))
    database.rows("UPDATE enrolments SET active = active - 1 WHERE run_id = %s", (run_id,))


def test_a_start_makes_a_run_that_is_due(api: Api, contact_id: str) -> None:
    automation_id = api.published()

    job = api.done(start(api, automation_id, contact_id, variables={"order": "order-1", "lines": [1, {"sku": None}]}))

    run = Run.get()
    assert show(api, run.id) == {
        "id": job["resource"]["id"],
        "automation_id": automation_id,
        "version": 1,
        "contact_id": contact_id,
        "conversation_id": None,
        "status": "queued",
        "reason": None,
        "variables": {"order": "order-1", "lines": [1, {"sku": None}]},
        "resume_at": None,
        "failure": None,
        "result": None,
        "cause": {"job_id": job["id"], "event_id": None, "run_id": None},
        "created_at": show(api, run.id)["created_at"],
        "started_at": None,
        "finished_at": None,
        "goal_reached_at": None,
        "steps": [],
    }
    assert job["resource"]["url"].endswith(f"/runs/{run.id}")
    assert run.due_at is not None
    assert rung_on("runs") == [api.workspace_id]
    assert api.get(f"automations/{automation_id}").json["data"]["runs"]["queued"] == 1


def test_the_run_can_be_read_before_its_start_takes_effect(api: Api, contact_id: str) -> None:
    automation_id = api.published()
    accepted = start(api, automation_id, contact_id, variables={"order": "order-1"})
    run_id = accepted.json["data"]["resource"]["id"]

    early = show(api, run_id)
    api.apply()

    assert (early["status"], early["version"], early["variables"]) == ("queued", None, {"order": "order-1"})
    assert show(api, run_id) == early | {"version": 1}


def test_a_run_of_another_workspace_is_not_found_before_its_start_either(api: Api, others: Api) -> None:
    theirs = start(others, others.published(), others.contact(email="eve@example.com")["id"])

    assert api.get(f"runs/{theirs.json['data']['resource']['id']}").status_code == 404


def test_a_caller_who_waits_gets_the_run(api: Api, contact_id: str) -> None:
    automation_id = api.published()

    with working():
        answer = api.post(f"automations/{automation_id}/start", {"contact_id": contact_id}, wait=20)

    assert answer.status_code == 201
    assert answer.headers["Location"].endswith(f"/runs/{answer.json['data']['id']}")
    assert (answer.json["data"]["status"], answer.json["data"]["version"]) == ("queued", 1)


def test_create_publish_and_start_need_no_waiting_in_between(api: Api, contact_id: str) -> None:
    automation_id = api.post("automations", BODY).json["data"]["resource"]["id"]
    published = api.post(f"automations/{automation_id}/publish")
    begun = [start(api, automation_id, contact_id) for _ in range(3)]
    unpublished = api.post(f"automations/{automation_id}/unpublish")
    late = start(api, automation_id, contact_id)

    api.apply()

    assert [api.job(job)["status"] for job in (published, *begun, unpublished)] == ["succeeded"] * 5
    assert api.job(late)["problem"]["type"] == "https://bellhop.test/problems/automation-not-published"
    assert one("SELECT count(*) FROM runs") == 3


def test_a_run_keeps_the_version_that_it_started_with(api: Api, contact_id: str) -> None:
    automation_id = api.published()
    first = started(api, automation_id, contact_id)
    api.done(api.post(f"automations/{automation_id}/publish"))

    second = started(api, automation_id, contact_id)

    assert [show(api, run_id)["version"] for run_id in (first, second)] == [1, 2]


# Refusals


@pytest.mark.parametrize("actions", [[], ["publish", "unpublish"]], ids=["draft", "unpublished"])
def test_what_is_not_published_is_refused_at_once(api: Api, contact_id: str, actions: list[str]) -> None:
    automation_id = api.automation()["id"]
    for action in actions:
        api.done(api.post(f"automations/{automation_id}/{action}"))
    before = row_counts()

    answer = start(api, automation_id, contact_id)

    assert answer.status_code == 409
    assert answer.get_json(force=True)["type"] == "https://bellhop.test/problems/automation-not-published"
    assert row_counts() == before


def test_the_problem_has_a_page(api: Api) -> None:
    assert api.client.get("/problems/automation-not-published").status_code == 200


def test_a_paused_automation_accepts_starts(api: Api, contact_id: str) -> None:
    automation_id = api.published()
    api.done(api.post(f"automations/{automation_id}/pause"))

    assert show(api, started(api, automation_id, contact_id))["status"] == "queued"


def test_a_contact_that_is_deleted_meanwhile_fails_the_job(api: Api, contact_id: str) -> None:
    automation_id = api.published()
    api.delete(f"contacts/{contact_id}")

    job = api.done(start(api, automation_id, contact_id))

    assert (job["status"], job["problem"]["errors"][0]["pointer"]) == ("failed", "/contact_id")
    assert one("SELECT count(*) FROM runs") == 0


def test_an_automation_that_is_deleted_meanwhile_fails_the_job(api: Api, contact_id: str) -> None:
    automation_id = api.published()
    api.delete(f"automations/{automation_id}")

    job = api.done(start(api, automation_id, contact_id))

    assert (job["status"], job["problem"]["status"]) == ("failed", 404)
    assert api.get(f"runs/{job['resource']['id']}").status_code == 404


@pytest.mark.parametrize(
    ("variables", "pointer"),
    [
        ([], "/variables"),
        ({f"v{number}": 1 for number in range(65)}, "/variables"),
        ({"text": "x" * 32 * 1024}, "/variables"),
        ({"": 1}, "/variables/"),
        ({"x" * 101: 1}, f"/variables/{'x' * 101}"),
        ({"text": "\x00"}, "/variables/text"),
    ],
    ids=["no object", "many", "large", "no name", "a long name", "U+0000"],
)
def test_variables_have_limits(api: Api, contact_id: str, variables: Any, pointer: str) -> None:
    answer = start(api, api.published(), contact_id, variables=variables)

    assert answer.status_code == 422
    assert answer.get_json(force=True)["errors"][0]["pointer"] == pointer


def test_variables_may_be_as_large_as_the_limits(api: Api, contact_id: str) -> None:
    variables: dict[str, Any] = {f"v{number}": number for number in range(62)} | {"x" * 100: "ü", "none": None}
    variables["v0"] = "x" * (
        32 * 1024 - len(json.dumps(variables, ensure_ascii=False, separators=(",", ":")).encode()) - 1
    )

    run_id = started(api, api.published(), contact_id, variables=variables)

    assert show(api, run_id)["variables"] == variables


# Reentry


def test_by_default_a_contact_may_enter_every_time(api: Api, contact_id: str) -> None:
    automation_id = api.published()

    runs = [started(api, automation_id, contact_id) for _ in range(3)]

    assert all_of("SELECT id FROM runs ORDER BY id") == runs
    assert one("SELECT active FROM enrolments") == 3


def test_after_finish_keeps_a_contact_out_that_is_in(api: Api, contact_id: str) -> None:
    automation_id = api.published(reentry="after_finish")
    first = started(api, automation_id, contact_id)

    refused = api.done(start(api, automation_id, contact_id))

    problem = refused["problem"]
    assert (refused["status"], problem["status"], problem["conflicting_run_id"]) == ("failed", 409, first)
    kept = show(api, refused["resource"]["id"])
    assert (kept["status"], kept["reason"]) == ("cancelled", "reentry")
    assert kept["finished_at"] is not None
    finish(first)
    assert show(api, started(api, automation_id, contact_id))["status"] == "queued"


def test_once_keeps_a_contact_out_for_good(api: Api, contact_id: str) -> None:
    automation_id = api.published(reentry="once")
    first = started(api, automation_id, contact_id)
    finish(first)

    with working():
        answer = api.post(f"automations/{automation_id}/start", {"contact_id": contact_id}, wait=20)

    assert (answer.status_code, answer.get_json(force=True)["conflicting_run_id"]) == (409, first)
    other = api.contact(email="lovelace@example.com")["id"]
    assert show(api, started(api, automation_id, other))["status"] == "queued"


def test_of_a_burst_of_starts_one_enters(api: Api, contact_id: str) -> None:
    automation_id = api.published(reentry="once")
    burst = [start(api, automation_id, contact_id) for _ in range(10)]

    api.apply()

    jobs = [api.job(each) for each in burst]
    assert [job["status"] for job in jobs] == ["succeeded"] + ["failed"] * 9
    assert {job["problem"]["conflicting_run_id"] for job in jobs[1:]} == {jobs[0]["resource"]["id"]}
    assert all_of("SELECT count(*) FROM runs GROUP BY status ORDER BY status") == [9, 1]


def test_a_refused_start_is_no_event_and_counts_as_cancelled(api: Api, contact_id: str) -> None:
    automation_id = api.published(reentry="once")
    started(api, automation_id, contact_id)

    api.done(start(api, automation_id, contact_id))

    assert [kind for kind in event_kinds(api.workspace_id) if kind.startswith("automation.")] == []
    counted = api.get(f"automations/{automation_id}").json["data"]["runs"]
    assert (counted["queued"], counted["cancelled"]) == (1, 1)


def test_a_change_of_reentry_counts_at_once(api: Api, contact_id: str) -> None:
    automation_id = api.published()
    started(api, automation_id, contact_id)
    api.patch(f"automations/{automation_id}", {"reentry": "once"})

    assert api.done(start(api, automation_id, contact_id))["status"] == "failed"


def test_the_document_describes_what_a_refusal_names(api: Api) -> None:
    components = api.get("/api/v1/openapi.json").json["components"]

    assert "conflicting_run_id" in components["schemas"]["Problem"]["properties"]


# What a burst costs


def test_a_burst_of_starts_takes_few_statements(api: Api, statements: list[str]) -> None:
    automation_id = api.published()
    contacts = [api.contact(email=f"{number}@example.com")["id"] for number in range(50)]
    api.done(start(api, automation_id, contacts[0]))  # the token is remembered from here on
    statements.clear()

    for contact_id in contacts:
        start(api, automation_id, contact_id)
    accepting = len(statements)
    writes.work(api.workspace_id)

    assert accepting <= 2 * len(contacts) + 2  # the token may be looked up again
    assert len(statements) - accepting <= 20
    assert one("SELECT count(*) FROM runs") == 51

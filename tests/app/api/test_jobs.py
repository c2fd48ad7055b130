from __future__ import annotations

import re
import time
from contextlib import ExitStack
from typing import Any

import pytest

from app import bounds
from app.database import rows
from app.domain.contacts import contacts
from app.domain.verbs import VERBS
from tests.cast import Api, found, one, working


def break_upserts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes every upsert fail with an unexpected error."""

    def broken(*_: Any) -> None:
        raise RuntimeError("hunter2 at line 7")

    monkeypatch.setattr(contacts, "_record", broken)


def test_an_accepted_write_is_answered_with_its_job(api: Api) -> None:
    answer = api.post("contacts", {"email": "ada@example.com"}, headers={"X-Request-Id": "mine"})

    assert (answer.status_code, answer.mimetype) == (202, "application/json")
    job = answer.json["data"]
    assert job == {
        "object": "job",
        "id": job["id"],
        "kind": "contacts.upsert",
        "status": "queued",
        "resource": None,
        "problem": None,
        "created_at": job["created_at"],
        "started_at": None,
        "finished_at": None,
    }
    assert re.fullmatch(r"job_[0-7][0-9a-hjkmnp-tv-z]{25}", job["id"])
    assert answer.headers["Location"] == f"https://bellhop.test{api.path('jobs/' + job['id'])}"
    assert answer.headers["X-Request-Id"] == "mine"
    assert "Preference-Applied" not in answer.headers


def test_the_job_is_at_its_location(api: Api) -> None:
    answer = api.post("contacts", {"email": "ada@example.com"})

    assert api.job(answer) == answer.json["data"]


def test_a_job_of_a_kind_that_only_a_newer_version_knows_is_shown_to_unrestricted_tokens(api: Api) -> None:
    job_id = api.post("contacts", {"email": "ada@example.com"}).json["data"]["id"]
    rows("UPDATE jobs SET kind = 'contacts.teleport'")

    assert api.get(f"jobs/{job_id}").json["data"]["kind"] == "contacts.teleport"
    assert [job["id"] for job in api.get("jobs").json["data"]] == [job_id]
    assert api.restricted_to("contacts").get(f"jobs/{job_id}").status_code == 403


def test_a_write_takes_no_effect_before_its_job_has_run(api: Api) -> None:
    answer = api.post("contacts", {"email": "ada@example.com"})
    assert api.get("contacts").json["data"] == []

    job = api.done(answer)

    assert job["status"] == "succeeded"
    assert len(api.get("contacts").json["data"]) == 1


def test_a_job_that_succeeded_names_what_it_made(api: Api) -> None:
    job = api.done(api.post("contacts", {"email": "ada@example.com"}))

    contact_id = one("SELECT id FROM contacts")
    assert job["resource"] == {
        "type": "contact",
        "id": contact_id,
        "url": f"https://bellhop.test{api.path('contacts/' + contact_id)}",
    }
    assert job["created_at"] <= job["started_at"] <= job["finished_at"]
    assert job["problem"] is None


def test_a_create_names_its_resource_at_once(api: Api) -> None:
    answer = api.post("webhooks/endpoints", {"address": "https://shop.example/", "events": ["*"]})

    resource = answer.json["data"]["resource"]
    assert resource["type"] == "endpoint"
    assert resource["url"] == f"https://bellhop.test{api.path('webhooks/endpoints/' + resource['id'])}"
    assert api.done(answer)["resource"] == resource
    assert api.get(f"webhooks/endpoints/{resource['id']}").status_code == 200


def test_a_job_that_failed_carries_a_whole_problem(api: Api) -> None:
    api.contact(external_id="other", email="ada@example.com")

    answer = api.post(
        "contacts", {"external_id": "c", "email": "ada@example.com"}, headers={"X-Request-Id": "trace-of-this"}
    )
    job = api.done(answer)

    assert job["status"] == "failed"
    assert job["resource"] is None
    assert job["finished_at"] is not None
    assert job["problem"] | {"detail": "", "conflicting_contact_id": ""} == {
        "type": "https://bellhop.test/problems/conflict",
        "title": "Conflict",
        "status": 409,
        "detail": "",
        "traceId": "trace-of-this",
        "conflicting_field": "external_id",
        "conflicting_contact_id": "",
    }


# Prefer: wait


def test_a_caller_who_waits_for_a_create_gets_the_resource(api: Api) -> None:
    with working():
        answer = api.post("contacts", {"email": "ada@example.com"}, wait=10)

    assert answer.status_code == 201, answer.text
    assert answer.headers["Preference-Applied"] == "wait=10"
    contact = answer.json["data"]
    assert contact["email"] == "ada@example.com"
    assert answer.headers["Location"] == f"https://bellhop.test{api.path('contacts/' + contact['id'])}"
    assert answer.json == {"data": api.show_contact(contact["id"])}


def test_a_caller_who_waits_for_a_change_gets_200(api: Api) -> None:
    api.contact(email="ada@example.com")

    with working():
        answer = api.post("contacts", {"email": "ada@example.com", "first_name": "Ada"}, wait=10)

    assert (answer.status_code, answer.headers["Preference-Applied"]) == (200, "wait=10")
    assert answer.json["data"]["first_name"] == "Ada"


@pytest.mark.parametrize("method", ["add", "patch", "remove"])
def test_a_caller_who_waits_for_an_action_gets_the_resource(api: Api, method: str) -> None:
    contact = api.contact(email="ada@example.com", tags=["vip"])
    path = f"contacts/{contact['id']}"
    ask = {
        "add": lambda: api.post(f"{path}/tags", {"name": "new"}, wait=10),
        "patch": lambda: api.patch(path, {"first_name": "Ada"}, wait=10),
        "remove": lambda: api.delete(f"{path}/tags/vip", wait=10),
    }

    with working():
        answer = ask[method]()

    assert (answer.status_code, answer.headers["Preference-Applied"]) == (200, "wait=10")
    assert answer.json["data"] == api.show_contact(contact["id"]) != contact


def test_a_caller_who_waits_for_a_delete_gets_204(api: Api) -> None:
    contact = api.contact(email="ada@example.com")

    with working():
        answer = api.delete(f"contacts/{contact['id']}", wait=10)

    assert (answer.status_code, answer.data) == (204, b"")
    assert "Content-Type" not in answer.headers
    assert answer.headers["Preference-Applied"] == "wait=10"


def test_a_caller_who_waits_for_a_failure_gets_its_problem_with_its_status(api: Api) -> None:
    holder = api.contact(external_id="other", email="ada@example.com")

    with working():
        answer = api.post("contacts", {"external_id": "c", "email": "ada@example.com"}, wait=10)

    assert (answer.status_code, answer.mimetype) == (409, "application/problem+json")
    assert answer.headers["Preference-Applied"] == "wait=10"
    document = answer.get_json(force=True)
    assert document["conflicting_contact_id"] == holder["id"]
    assert document["traceId"] == answer.headers["X-Request-Id"]


def test_a_caller_who_waits_for_an_endpoint_gets_its_secret_beside_it(api: Api) -> None:
    with working():
        answer = api.post("webhooks/endpoints", {"address": "https://shop.example/", "events": ["*"]}, wait=10)

    assert answer.status_code == 201
    assert answer.json["secret"].startswith("whsec_")
    assert answer.json["data"]["state"] == "active"


def test_a_wait_that_runs_out_ends_with_the_job(api: Api) -> None:
    answer = api.post("contacts", {"email": "ada@example.com"}, wait=1)

    assert answer.status_code == 202
    assert answer.json["data"]["status"] == "queued"
    assert answer.headers["Location"].endswith(answer.json["data"]["id"])
    assert "Preference-Applied" not in answer.headers


@pytest.mark.parametrize(
    "preference",
    [
        *("wait=0", "wait=x", "wait", "wait=-1", "await=5", "respond-async", "", "wait=0.5", "wait=.5", "wait=1e1"),
        *("wait=5s", "wait=x, wait=5", "wait, wait=5", "wait-for=5", "wait=nan", "wait=inf", "foo; wait=5"),
    ],
)
def test_a_preference_that_is_none_is_ignored(api: Api, preference: str) -> None:
    answer = api.post("contacts", {"email": "ada@example.com"}, headers={"Prefer": preference})

    assert answer.status_code == 202
    assert "Preference-Applied" not in answer.headers


@pytest.mark.parametrize(
    "preference", ["wait=25", "WAIT=25", 'wait="25"', "respond-async, wait=25", "wait=25; x=y", "wait = 25"]
)
def test_a_preference_is_read_as_rfc_7240_writes_it(api: Api, preference: str) -> None:
    with working():
        answer = api.post("contacts", {"email": "ada@example.com"}, headers={"Prefer": preference})

    assert (answer.status_code, answer.headers["Preference-Applied"]) == (201, "wait=25")


@pytest.mark.parametrize(
    ("preference", "applied"),
    [
        *(("wait=31", 30), ("wait=600", 30), (f"wait={'9' * 5_000}", 30), ("wait=030", 30), ("wait=30.5", 30)),
        *(("wait=20.7", 20), ("wait=20.", 20), ('wait="20.99"', 20), ("wait=20, wait=25", 20), ("foo=1,wait=20", 20)),
    ],
)
def test_a_wait_counts_in_whole_seconds_up_to_30(api: Api, preference: str, applied: int) -> None:
    with working():
        answer = api.post("contacts", {"email": "ada@example.com"}, headers={"Prefer": preference})

    assert (answer.status_code, answer.headers["Preference-Applied"]) == (201, f"wait={applied}")


def test_a_job_that_is_not_valid_any_more_says_why(api: Api) -> None:
    contact = api.contact(email="ada@example.com")
    deleted = api.delete(f"contacts/{contact['id']}")
    sold = api.post("sales", {"contact_id": contact["id"], "amount": "1", "currency": "EUR"})
    api.done(deleted)

    problem = api.job(sold)["problem"]

    assert problem["detail"] == f"contact_id: {problem['errors'][0]['detail']}"


# Surprises


def test_a_job_that_breaks_fails_alone_and_keeps_what_it_was_asked(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint_id = api.endpoint()
    broken = api.post("contacts", {"email": "ada@example.com"}, headers={"X-Request-Id": "trace-of-this"})
    good = api.patch(f"webhooks/endpoints/{endpoint_id}", {"description": "Good"})
    break_upserts(monkeypatch)

    api.apply()

    job = api.job(broken)
    assert (job["status"], api.job(good)["status"]) == ("failed", "succeeded")
    assert job["problem"] == {
        "type": "https://bellhop.test/problems/internal-error",
        "title": "Internal error",
        "status": 500,
        "detail": job["problem"]["detail"],
        "traceId": "trace-of-this",
    }
    assert "hunter2" not in str(job)
    assert one("SELECT count(*) FROM contacts") == 0
    assert one("SELECT payload->>'email' FROM jobs WHERE id = %s", job["id"]) == "ada@example.com"


def test_a_caller_who_waits_for_a_job_that_breaks_gets_500(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    break_upserts(monkeypatch)

    with working():
        answer = api.post("contacts", {"email": "ada@example.com"}, wait=10)

    assert (answer.status_code, answer.mimetype) == (500, "application/problem+json")
    assert answer.get_json(force=True)["traceId"] == answer.headers["X-Request-Id"]


def test_the_payload_of_a_job_that_ended_well_or_was_refused_is_forgotten(api: Api) -> None:
    api.contact(external_id="other", email="ada@example.com")
    api.done(api.post("contacts", {"external_id": "c", "email": "ada@example.com"}))

    assert one("SELECT count(*) FROM jobs WHERE payload IS NOT NULL") == 0


# The list


@pytest.fixture
def mixed(api: Api) -> dict[str, str]:
    """Jobs by what is special of them, oldest first."""
    endpoint = api.post("webhooks/endpoints", {"address": "https://shop.example/", "events": ["*"]})
    made = api.post("contacts", {"external_id": "other", "email": "ada@example.com"})
    failed = api.post("contacts", {"external_id": "c", "email": "ada@example.com"})
    api.apply()
    queued = api.post("contacts", {"email": "eve@example.com"})
    answers = {"endpoint": endpoint, "made": made, "failed": failed, "queued": queued}
    return {name: answer.json["data"]["id"] for name, answer in answers.items()}


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["queued", "failed", "made", "endpoint"]),
        ("status=queued", ["queued"]),
        ("status=failed", ["failed"]),
        ("status=succeeded", ["made", "endpoint"]),
        ("status=running", []),
        ("kind=contacts.upsert", ["queued", "failed", "made"]),
        ("kind=endpoints.create", ["endpoint"]),
        ("kind=contacts.upsert&status=succeeded", ["made"]),
        ("kind=contacts.delete", []),
    ],
)
def test_a_filter_finds(api: Api, mixed: dict[str, str], query: str, found: list[str]) -> None:
    answer = api.get(f"jobs?{query}")

    assert answer.status_code == 200
    assert [job["id"] for job in answer.json["data"]] == [mixed[name] for name in found]


def test_a_list_shows_the_jobs_of_what_the_token_may(api: Api, mixed: dict[str, str]) -> None:
    assert [job["id"] for job in api.restricted_to("webhooks").get("jobs").json["data"]] == [mixed["endpoint"]]
    assert len(api.restricted_to("contacts").get("jobs").json["data"]) == 3
    assert len(api.restricted_to("contacts", "webhooks").get("jobs").json["data"]) == 4
    assert api.restricted_to("billing").get("jobs").json == {"data": [], "meta": {"nextCursor": None, "hasMore": False}}


def test_a_job_needs_the_restriction_of_its_kind(api: Api, mixed: dict[str, str]) -> None:
    assert api.restricted_to("webhooks").get(f"jobs/{mixed['endpoint']}").status_code == 200
    assert api.restricted_to("contacts").get(f"jobs/{mixed['endpoint']}").status_code == 403
    assert api.restricted_to("webhooks").get(f"jobs/{mixed['made']}").status_code == 403


def test_every_kind_can_be_asked_for(api: Api) -> None:
    assert {kind: api.get(f"jobs?kind={kind}").status_code for kind in VERBS} == dict.fromkeys(VERBS, 200)


def test_a_request_waits_only_where_there_is_a_place(api: Api) -> None:
    with ExitStack() as waiting:
        for _ in range(bounds.WAITING_PER_WORKSPACE.most):
            assert waiting.enter_context(bounds.waiting(api.workspace_id))
        began = time.monotonic()
        answer = api.post("contacts", {"email": "ada@example.com"}, headers={"Prefer": "wait=20"})
        seconds = time.monotonic() - began
        with working():
            other = found(api.client, "Other").post("contacts", {"email": "a@b.example"}, headers={"Prefer": "wait=20"})

    assert (answer.status_code, answer.json["data"]["status"]) == (202, "queued")
    assert "Preference-Applied" not in answer.headers
    assert seconds < 10
    assert other.status_code == 201


def test_places_to_wait_are_given_back(api: Api) -> None:
    for number in range(bounds.WAITING.most + 2):
        with working():
            answer = api.post("contacts", {"email": f"{number}@example.com"}, headers={"Prefer": "wait=20"})
        assert answer.status_code == 201

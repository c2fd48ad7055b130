"""Idempotency-Key: a write happens once, however often it is sent."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from flask import Flask

from app import database
from app.domain.retention import delete_old
from tests.cast import KEY, Api, in_threads, one, working

ADA = {"email": "ada@example.com"}
ENDPOINT = {"address": "https://shop.example/", "events": ["*"]}


def test_the_same_request_with_the_same_key_gets_the_same_job(api: Api) -> None:
    first = api.post("contacts", ADA, key=KEY)
    second = api.post("contacts", ADA, key=KEY)

    assert (first.status_code, second.status_code) == (202, 202)
    assert second.json == first.json
    assert second.headers["Location"] == first.headers["Location"]
    assert "Idempotent-Replayed" not in first.headers
    assert second.headers["Idempotent-Replayed"] == "true"
    assert one("SELECT count(*) FROM jobs") == 1


def test_a_replay_after_the_job_has_ended_shows_how_it_ended(api: Api) -> None:
    job = api.done(api.post("contacts", ADA, key=KEY))

    again = api.post("contacts", ADA, key=KEY)

    assert again.status_code == 202
    assert again.json["data"] == job
    assert one("SELECT count(*) FROM jobs") == 1


def test_a_replay_that_waits_gets_the_result(api: Api) -> None:
    api.done(api.post("contacts", ADA, key=KEY))

    again = api.post("contacts", ADA, key=KEY, wait=5)

    assert (again.status_code, again.headers["Idempotent-Replayed"]) == (201, "true")
    assert again.headers["Preference-Applied"] == "wait=5"


def test_a_replay_of_a_failure_that_waits_gets_the_problem(api: Api) -> None:
    api.contact(external_id="a", **ADA)
    body = {"external_id": "c", **ADA}
    first = api.done(api.post("contacts", body, key=KEY))

    again = api.post("contacts", body, key=KEY, wait=5, headers={"X-Request-Id": "now"})

    assert (again.status_code, again.headers["Idempotent-Replayed"]) == (409, "true")
    assert again.get_json(force=True) == first["problem"] | {"traceId": "now"}


@pytest.mark.parametrize("given", [f'"{KEY}"', KEY.upper(), f'"{KEY.upper()}"', f" {KEY} "])
def test_a_key_may_be_quoted_and_in_any_case(api: Api, given: str) -> None:
    first = api.post("contacts", ADA, key=KEY)

    again = api.post("contacts", ADA, key=given)

    assert again.headers["Idempotent-Replayed"] == "true"
    assert again.json["data"]["id"] == first.json["data"]["id"]


@pytest.mark.parametrize(
    ("path", "options"),
    [
        ("contacts", {"body": {"email": "eve@example.com"}}),
        ("contacts", {"body": ADA | {"first_name": "Ada"}}),
        ("contacts", {"data": b'{ "email":"ada@example.com"}', "content_type": "application/json"}),
        ("webhooks/endpoints", {"body": ENDPOINT}),
    ],
    ids=["other address", "more", "other bytes", "other path"],
)
def test_another_request_with_the_key_is_refused(api: Api, path: str, options: dict[str, Any]) -> None:
    api.post("contacts", ADA, key=KEY)

    answer = api.post(path, options.pop("body", None), key=KEY, **options)

    assert (answer.status_code, answer.mimetype) == (422, "application/problem+json")
    document = answer.get_json(force=True)
    assert document["type"] == "https://bellhop.test/problems/idempotency-key-reused"
    assert document["traceId"] == answer.headers["X-Request-Id"]
    assert "Idempotent-Replayed" not in answer.headers
    assert one("SELECT count(*) FROM jobs") == 1


def test_another_method_with_the_key_is_refused(api: Api) -> None:
    contact = api.contact(**ADA)
    path = f"contacts/{contact['id']}"
    api.patch(path, {"first_name": "Ada"}, key=KEY)

    answer = api.delete(path, key=KEY)

    assert answer.status_code == 422
    assert answer.get_json(force=True)["type"].endswith("/idempotency-key-reused")


def test_a_query_is_refused_as_such_also_with_the_key(api: Api) -> None:
    api.post("contacts", ADA, key=KEY)

    answer = api.post("contacts?dry_run=1", ADA, key=KEY)

    assert answer.status_code == 422
    assert answer.get_json(force=True)["errors"][0]["pointer"] == "/dry_run"
    assert api.post("contacts", ADA, key=KEY).headers["Idempotent-Replayed"] == "true"


@pytest.mark.parametrize(
    "given", [f'"{KEY}', f'{KEY}"', f'""{KEY}""', f"'{KEY}'", f'"{KEY}";a=b', f"{KEY},{KEY}", '""']
)
def test_a_key_is_quoted_on_both_sides_or_on_none(api: Api, given: str) -> None:
    answer = api.post("contacts", ADA, key=given)

    assert answer.status_code == 422
    assert one("SELECT count(*) FROM jobs") == one("SELECT count(*) FROM idempotency_keys") == 0


def test_a_wrong_key_is_refused_where_nothing_would_be_stored_too(api: Api) -> None:
    path = f"webhooks/endpoints/{api.endpoint()}/resend"

    assert api.post(path, {"dry_run": True}, key="no key").status_code == 422
    assert api.post(path, {"dry_run": True}, key=KEY).status_code == 200
    assert "Idempotent-Replayed" not in api.post(path, {}, key=KEY).headers


@pytest.mark.parametrize(
    ("status", "method", "path", "options"),
    [
        (400, "POST", "contacts", {"data": "{", "content_type": "application/json"}),
        (401, "POST", "contacts", {"body": ADA, "headers": {"Authorization": "Bearer wrong"}}),
        (404, "PATCH", "contacts/con_01kaj5bd40e6rr3f5y2kq0w9xz", {"body": {"first_name": "Ada"}}),
        (404, "DELETE", "contacts/con_01kaj5bd40e6rr3f5y2kq0w9xz", {}),
        (405, "PUT", "contacts", {"body": ADA}),
        (413, "POST", "contacts", {"body": {"first_name": "x" * 300_000}}),
        (415, "POST", "contacts", {"data": "email=x"}),
        (422, "POST", "contacts", {"body": {"email": "x"}}),
        (422, "POST", "contacts?x=1", {"body": ADA}),
    ],
)
def test_a_key_of_a_refused_request_may_be_used_for_another(
    api: Api, status: int, method: str, path: str, options: dict[str, Any]
) -> None:
    assert api.ask(method, path, key=KEY, **options).status_code == status

    answer = api.post("contacts", ADA, key=KEY)

    assert answer.status_code == 202
    assert "Idempotent-Replayed" not in answer.headers


def test_a_key_of_a_request_that_the_token_may_not_make_may_be_used_for_another(api: Api) -> None:
    narrow = api.restricted_to("webhooks")
    assert narrow.post("contacts", ADA, key=KEY).status_code == 403

    answer = narrow.post("webhooks/endpoints", ENDPOINT, key=KEY)

    assert answer.status_code == 202
    assert "Idempotent-Replayed" not in answer.headers


def test_a_key_of_a_request_that_conflicts_at_once_may_be_used_for_another(api: Api) -> None:
    api.endpoint()
    api.contact(**ADA)
    delivery_id = one("SELECT id FROM deliveries")
    database.rows("UPDATE deliveries SET status = 'cancelled', due_at = NULL")
    assert api.post(f"webhooks/deliveries/{delivery_id}/resend", key=KEY).status_code == 409

    assert api.post("contacts", ADA, key=KEY).status_code == 202


def test_the_same_bytes_with_other_headers_are_the_same_request(api: Api) -> None:
    api.post("contacts", ADA, key=KEY)

    again = api.post("contacts", ADA, key=KEY, headers={"X-Request-Id": "second", "User-Agent": "other"})

    assert again.headers["Idempotent-Replayed"] == "true"


def test_a_key_is_one_tokens_alone(api: Api, others: Api) -> None:
    answers = [caller.post("contacts", ADA, key=KEY) for caller in (api, api.restricted_to("contacts"), others)]

    assert [answer.status_code for answer in answers] == [202, 202, 202]
    assert len({answer.json["data"]["id"] for answer in answers}) == 3


def test_fifty_requests_at_once_with_one_key_make_one_job(api: Api, app: Flask) -> None:
    callers = [replace(api, client=app.test_client()) for _ in range(50)]

    answers = in_threads([lambda caller=caller: caller.post("contacts", ADA, key=KEY) for caller in callers])

    assert {answer.status_code for answer in answers} == {202}
    assert len({answer.json["data"]["id"] for answer in answers}) == 1
    assert [answer.headers.get("Idempotent-Replayed") for answer in answers].count("true") == 49
    assert one("SELECT count(*) FROM jobs") == one("SELECT count(*) FROM idempotency_keys") == 1


def test_different_requests_at_once_with_one_key_make_one_job(api: Api, app: Flask) -> None:
    callers = [replace(api, client=app.test_client()) for _ in range(20)]

    answers = in_threads(
        [
            lambda caller=caller, n=n: caller.post("contacts", {"external_id": str(n)}, key=KEY)
            for n, caller in enumerate(callers)
        ]
    )

    assert sorted(answer.status_code for answer in answers) == [202] + [422] * 19
    assert one("SELECT count(*) FROM jobs") == 1


def let_pass(hours: float) -> None:
    """Makes all keys older by this much."""
    database.rows("UPDATE idempotency_keys SET created_at = created_at - %s", (timedelta(hours=hours),))


def test_a_key_is_taken_for_24_hours(api: Api) -> None:
    first = api.post("contacts", ADA, key=KEY)
    let_pass(23.99)

    assert api.post("contacts", ADA, key=KEY).json["data"]["id"] == first.json["data"]["id"]


@pytest.mark.parametrize("body", [ADA, {"email": "eve@example.com"}], ids=["same", "other"])
def test_after_24_hours_a_key_is_free(api: Api, body: dict[str, str]) -> None:
    first = api.post("contacts", ADA, key=KEY)
    let_pass(24.01)

    answer = api.post("contacts", body, key=KEY)

    assert answer.status_code == 202
    assert "Idempotent-Replayed" not in answer.headers
    assert answer.json["data"]["id"] != first.json["data"]["id"]
    assert api.post("contacts", body, key=KEY).json["data"]["id"] == answer.json["data"]["id"]


def test_after_24_hours_fifty_requests_at_once_make_one_new_job(api: Api, app: Flask) -> None:
    api.post("contacts", ADA, key=KEY)
    let_pass(24.01)
    callers = [replace(api, client=app.test_client()) for _ in range(50)]

    answers = in_threads([lambda caller=caller: caller.post("contacts", ADA, key=KEY) for caller in callers])

    assert {answer.status_code for answer in answers} == {202}
    assert one("SELECT count(*) FROM jobs") == 2


def test_keys_whose_window_is_over_are_forgotten(api: Api) -> None:
    api.post("contacts", ADA, key=KEY)
    let_pass(0.1)
    api.post("contacts", ADA, key=str(uuid.uuid4()))
    let_pass(24)

    assert delete_old("old_idempotency_keys") == 1
    assert one("SELECT count(*) FROM idempotency_keys") == 1


def test_a_key_whose_window_is_just_over_is_free_and_not_yet_forgotten(api: Api) -> None:
    first = api.post("contacts", ADA, key=KEY)
    let_pass(24.001)

    assert delete_old("old_idempotency_keys") == 0
    assert api.post("contacts", ADA, key=KEY).json["data"]["id"] != first.json["data"]["id"]


def test_keys_are_forgotten_a_batch_at_a_time(api: Api) -> None:
    for _ in range(3):
        api.post("contacts", ADA, key=str(uuid.uuid4()))
    let_pass(25)

    assert [
        delete_old("old_idempotency_keys", 2),
        delete_old("old_idempotency_keys", 2),
        delete_old("old_idempotency_keys", 2),
    ] == [2, 1, 0]


def test_a_delete_is_replayed_after_it_took_effect(api: Api) -> None:
    contact = api.contact(**ADA)
    first = api.delete(f"contacts/{contact['id']}", key=KEY)
    api.apply()
    assert api.get(f"contacts/{contact['id']}").status_code == 404

    again = api.delete(f"contacts/{contact['id']}", key=KEY)
    waited = api.delete(f"contacts/{contact['id']}", key=KEY, wait=5)

    assert (again.status_code, again.headers["Idempotent-Replayed"]) == (202, "true")
    assert again.json["data"]["id"] == first.json["data"]["id"]
    assert (waited.status_code, waited.headers["Idempotent-Replayed"]) == (204, "true")


def test_a_delete_of_what_is_gone_with_another_key_is_not_found(api: Api) -> None:
    contact = api.contact(**ADA)
    api.delete(f"contacts/{contact['id']}", key=KEY)
    api.apply()

    assert api.delete(f"contacts/{contact['id']}", key=str(uuid.uuid4())).status_code == 404
    assert api.delete(f"contacts/{contact['id']}").status_code == 404


def test_a_delete_of_what_is_gone_with_an_old_key_is_not_found(api: Api) -> None:
    contact = api.contact(**ADA)
    api.delete(f"contacts/{contact['id']}", key=KEY)
    api.apply()
    let_pass(24.01)

    assert api.delete(f"contacts/{contact['id']}", key=KEY).status_code == 404


def test_another_request_about_what_is_gone_with_the_key_is_refused_as_reuse(api: Api) -> None:
    contact = api.contact(**ADA)
    api.delete(f"contacts/{contact['id']}", key=KEY)
    api.apply()

    answer = api.patch(f"contacts/{contact['id']}", {"first_name": "Ada"}, key=KEY)

    assert answer.status_code == 422
    assert answer.get_json(force=True)["type"].endswith("/idempotency-key-reused")


def test_a_replay_that_waits_for_what_is_gone_again_gets_its_job(api: Api) -> None:
    job = api.done(api.post("contacts", ADA, key=KEY))
    api.done(api.delete(f"contacts/{job['resource']['id']}"))

    again = api.post("contacts", ADA, key=KEY, wait=5)

    assert (again.status_code, again.json["data"]) == (202, job)
    assert again.headers["Idempotent-Replayed"] == "true"


def test_the_secret_of_an_endpoint_is_not_shown_again(api: Api) -> None:
    first = api.post("webhooks/endpoints", ENDPOINT, key=KEY)

    again = api.post("webhooks/endpoints", ENDPOINT, key=KEY)
    with working():
        waited = api.post("webhooks/endpoints", ENDPOINT, key=KEY, wait=20)

    assert first.json["secret"].startswith("whsec_")
    assert [answer.headers["Idempotent-Replayed"] for answer in (again, waited)] == ["true", "true"]
    assert (again.status_code, waited.status_code) == (202, 201)
    assert "secret" not in again.json
    assert "whsec_" not in again.text + waited.text


def test_one_request_with_one_key_takes_effect_once(api: Api) -> None:
    first = api.post("contacts", ADA | {"tags": ["vip"]}, key=KEY)
    api.apply()
    contact_id = api.job(first)["resource"]["id"]
    api.done(api.delete(f"contacts/{contact_id}/tags/vip"))

    api.done(api.post("contacts", ADA | {"tags": ["vip"]}, key=KEY))

    assert api.show_contact(contact_id)["tags"] == []


def test_without_a_key_each_request_is_a_write_of_its_own(api: Api) -> None:
    answers = [api.post("contacts", ADA), api.post("contacts", ADA)]

    assert len({answer.json["data"]["id"] for answer in answers}) == 2
    assert one("SELECT count(*) FROM idempotency_keys") == 0

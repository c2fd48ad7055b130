from __future__ import annotations

import json
import uuid
from datetime import datetime
from typing import Any

import pytest
import stripe

from app import database
from app.config import settings
from app.domain import writes
from app.domain.deliveries import attempts, lanes
from app.domain.deliveries.attempts import Dispatch
from app.domain.webhooks import catalogue, endpoints
from app.domain.work.changes import Write
from app.lib import clock, vault
from app.models.jobs import Job
from tests.cast import Api, all_of, event_bodies, make_endpoint, one, sweep, working

BODY = {"address": "https://shop.example/hooks", "events": ["contact.created"]}


def statuses() -> list[str]:
    return all_of("SELECT status FROM deliveries ORDER BY id")


def test_an_endpoint_is_made(api: Api) -> None:
    answer = api.post("webhooks/endpoints", BODY | {"description": "The shop"})
    endpoint_id = api.done(answer)["resource"]["id"]

    shown = api.get(f"webhooks/endpoints/{endpoint_id}")

    assert shown.json["data"] == {
        "id": endpoint_id,
        "address": "https://shop.example/hooks",
        "events": ["contact.created"],
        "description": "The shop",
        "state": "active",
        "stop_reason": None,
        "stopped_at": None,
        "consecutive_failures": 0,
        "max_per_second": None,
        "ordered": False,
        "created_at": shown.json["data"]["created_at"],
    }


def test_the_secret_is_shown_once(api: Api) -> None:
    answer = api.post("webhooks/endpoints", BODY)
    endpoint_id = api.done(answer)["resource"]["id"]

    assert answer.json["secret"].startswith("whsec_")
    assert len(answer.json["secret"]) >= 38
    assert "secret" not in api.get(f"webhooks/endpoints/{endpoint_id}").text
    assert "secret" not in api.get("webhooks/endpoints").text
    assert "secret" not in api.get("jobs").text


def test_every_endpoint_has_a_secret_of_its_own(api: Api) -> None:
    assert api.post("webhooks/endpoints", BODY).json["secret"] != api.post("webhooks/endpoints", BODY).json["secret"]


def test_the_secret_is_stored_encrypted(api: Api) -> None:
    answer = api.post("webhooks/endpoints", BODY)
    secret = answer.json["secret"]
    waiting = str(database.rows("SELECT payload FROM jobs"))
    api.apply()

    sealed = bytes(one("SELECT secret FROM endpoints"))
    assert vault.decrypt(settings().secret_keys, sealed) == secret
    assert secret not in waiting
    assert secret.encode() not in sealed
    assert one("SELECT count(*) FROM jobs WHERE payload IS NOT NULL") == 0


def test_the_sealed_secret_cannot_be_given(api: Api) -> None:
    refused = api.post("webhooks/endpoints", BODY | {"sealed_secret": "x"})

    [error] = refused.json["errors"]
    assert (error["pointer"], error["detail"].split(".")[0]) == ("/sealed_secret", "Unknown field")


def test_an_address_of_an_allowed_network_is_taken(api: Api) -> None:
    assert api.post("webhooks/endpoints", BODY | {"address": "https://127.0.0.1:8443/"}).status_code == 202


@pytest.mark.parametrize(
    "change",
    [
        *({"address": "https://other.example/"}, {"events": ["*"]}, {"description": "Other"}, {"description": None}),
        *({"max_per_second": 1}, {"max_per_second": None}, {"ordered": True}, {"ordered": False}),
    ],
    ids=str,
)
def test_a_patch_changes_what_is_given(api: Api, change: dict[str, Any]) -> None:
    endpoint_id = api.done(api.post("webhooks/endpoints", BODY | {"description": "The shop"}))["resource"]["id"]
    before = api.get(f"webhooks/endpoints/{endpoint_id}").json["data"]

    job = api.done(api.patch(f"webhooks/endpoints/{endpoint_id}", change))

    assert (job["status"], job["resource"]["id"]) == ("succeeded", endpoint_id)
    assert api.get(f"webhooks/endpoints/{endpoint_id}").json["data"] == before | change


@pytest.mark.parametrize("limit", [1, 7.0, 1000])
def test_an_endpoint_is_made_with_a_limit(api: Api, limit: int) -> None:
    endpoint_id = api.done(api.post("webhooks/endpoints", BODY | {"max_per_second": limit}))["resource"]["id"]

    assert api.get(f"webhooks/endpoints/{endpoint_id}").json["data"]["max_per_second"] == limit


@pytest.mark.parametrize("limit", [0, -1, 1001, 1.5, "10", True])
def test_a_limit_that_is_no_whole_number_from_1_to_1000_is_refused(api: Api, limit: object) -> None:
    endpoint_id = api.endpoint()

    for answer in (
        api.post("webhooks/endpoints", BODY | {"max_per_second": limit}),
        api.patch(f"webhooks/endpoints/{endpoint_id}", {"max_per_second": limit}),
    ):
        assert answer.status_code == 422
        assert [fault["pointer"] for fault in answer.json["errors"]] == ["/max_per_second"]


def test_an_endpoint_is_made_that_wants_order(api: Api) -> None:
    endpoint_id = api.done(api.post("webhooks/endpoints", BODY | {"ordered": True}))["resource"]["id"]

    assert api.get(f"webhooks/endpoints/{endpoint_id}").json["data"]["ordered"] is True


@pytest.mark.parametrize("wanted", [None, "true", 1])
def test_an_order_that_is_neither_true_nor_false_is_refused(api: Api, wanted: object) -> None:
    answer = api.post("webhooks/endpoints", BODY | {"ordered": wanted})

    assert answer.status_code == 422
    assert [fault["pointer"] for fault in answer.json["errors"]] == ["/ordered"]


def test_a_patch_of_nothing_is_accepted(api: Api) -> None:
    endpoint_id = api.endpoint()

    assert api.done(api.patch(f"webhooks/endpoints/{endpoint_id}", {}))["status"] == "succeeded"


def test_an_endpoint_can_be_changed_before_its_job_has_run(api: Api) -> None:
    made = api.post("webhooks/endpoints", BODY)
    endpoint_id = made.json["data"]["resource"]["id"]

    changed = api.patch(f"webhooks/endpoints/{endpoint_id}", {"description": "At once"})
    api.apply()

    assert changed.status_code == 202
    assert api.job(changed)["status"] == "succeeded"
    assert api.get(f"webhooks/endpoints/{endpoint_id}").json["data"]["description"] == "At once"


def test_an_endpoint_can_be_deleted_before_its_job_has_run(api: Api) -> None:
    endpoint_id = api.post("webhooks/endpoints", BODY).json["data"]["resource"]["id"]

    deleted = api.delete(f"webhooks/endpoints/{endpoint_id}")
    api.apply()

    assert api.job(deleted)["status"] == "succeeded"
    assert api.get(f"webhooks/endpoints/{endpoint_id}").status_code == 404


def test_an_endpoint_that_another_workspace_is_about_to_make_is_not_found(api: Api, others: Api) -> None:
    endpoint_id = others.post("webhooks/endpoints", BODY).json["data"]["resource"]["id"]

    assert api.patch(f"webhooks/endpoints/{endpoint_id}", {"description": "x"}).status_code == 404
    assert api.delete(f"webhooks/endpoints/{endpoint_id}").status_code == 404


def test_a_deleted_endpoint_is_gone(api: Api) -> None:
    endpoint_id = api.endpoint()

    job = api.done(api.delete(f"webhooks/endpoints/{endpoint_id}"))

    assert job["status"] == "succeeded"
    assert api.get(f"webhooks/endpoints/{endpoint_id}").status_code == 404
    assert api.get("webhooks/endpoints").json["data"] == []
    assert api.patch(f"webhooks/endpoints/{endpoint_id}", {"description": "x"}).status_code == 404
    assert api.delete(f"webhooks/endpoints/{endpoint_id}").status_code == 404


def test_a_patch_behind_a_delete_fails_with_not_found(api: Api) -> None:
    endpoint_id = api.endpoint()
    api.delete(f"webhooks/endpoints/{endpoint_id}")
    patching = api.patch(f"webhooks/endpoints/{endpoint_id}", {"description": "Late"})

    api.apply()

    assert api.job(patching)["status"] == "failed"
    assert api.job(patching)["problem"]["status"] == 404


def test_a_deleted_endpoint_gets_no_further_deliveries(api: Api) -> None:
    endpoint_id = api.endpoint()
    api.done(api.delete(f"webhooks/endpoints/{endpoint_id}"))

    api.contact(email="ada@example.com")

    assert statuses() == []


# Order: what an endpoint gets depends on what was accepted before


def test_an_endpoint_gets_what_was_accepted_after_it_in_the_same_batch(api: Api) -> None:
    api.post("contacts", {"external_id": "before"})
    api.post("webhooks/endpoints", BODY)
    api.post("contacts", {"external_id": "after"})

    api.apply()

    assert all_of(
        "SELECT convert_from(body, 'UTF8')::jsonb #>> '{data,contact,external_id}' FROM deliveries"
        " JOIN events ON events.id = event_id"
    ) == ["after"]


def test_an_endpoint_that_is_deleted_in_the_same_batch_gets_what_was_accepted_before(api: Api) -> None:
    endpoint_id = api.endpoint()
    api.post("contacts", {"external_id": "before"})
    api.delete(f"webhooks/endpoints/{endpoint_id}")
    api.post("contacts", {"external_id": "after"})

    api.apply()

    assert one("SELECT count(*) FROM deliveries") == 1


def test_only_the_kinds_that_were_chosen_are_delivered(api: Api) -> None:
    some, every = api.endpoint(events=["tag.added"]), api.endpoint(events=["*"])

    api.contact(email="ada@example.com", tags=["vip"])

    assert all_of("SELECT kind FROM deliveries WHERE endpoint_id = %s", some) == ["tag.added"]
    assert all_of("SELECT kind FROM deliveries WHERE endpoint_id = %s ORDER BY id", every) == [
        "contact.created",
        "tag.added",
    ]


def test_events_of_another_workspace_are_not_delivered(api: Api, others: Api) -> None:
    api.endpoint()

    others.contact(email="ada@example.com")

    assert statuses() == []


def test_what_happens_while_an_endpoint_is_stopped_is_held(api: Api) -> None:
    endpoint_id = api.endpoint()
    database.rows("UPDATE endpoints SET state = 'stopped', stop_reason = 'Gone.', stopped_at = now()")

    api.contact(email="ada@example.com")

    assert statuses() == ["held"]
    shown = api.get(f"webhooks/endpoints/{endpoint_id}").json["data"]
    assert (shown["state"], shown["stop_reason"]) == ("stopped", "Gone.")


def test_rows_of_deleted_endpoints_are_dropped_after_an_hour(api: Api) -> None:
    kept, dropped = api.endpoint(), api.endpoint()
    for endpoint_id in (kept, dropped):
        api.done(api.delete(f"webhooks/endpoints/{endpoint_id}"))
        sweep(endpoint_id)
    database.rows("UPDATE endpoints SET updated_at = now() - interval '61 minutes' WHERE id = %s", (dropped,))

    assert endpoints.drop_deleted() == 1
    assert all_of("SELECT id FROM endpoints") == [kept]


def test_rows_of_deleted_endpoints_stay_while_a_delivery_or_a_sweep_is_unfinished(api: Api) -> None:
    endpoint_id = api.endpoint()
    api.done(api.delete(f"webhooks/endpoints/{endpoint_id}"))
    database.rows("UPDATE endpoints SET updated_at = now() - interval '61 minutes'")

    assert endpoints.drop_deleted() == 0  # its sweep waits

    sweep(endpoint_id)
    database.rows(
        "INSERT INTO deliveries (id, workspace_id, event_id, endpoint_id, kind) VALUES ('dlv_late', %s, '', %s, '')",
        (api.workspace_id, endpoint_id),
    )
    assert endpoints.drop_deleted() == 0
    database.rows("UPDATE deliveries SET status = 'cancelled', due_at = NULL")
    assert endpoints.drop_deleted() == 1


# A new secret


def rotate(api: Api, endpoint_id: str) -> str:
    """The secret that the endpoint has got."""
    answer = api.post(f"webhooks/endpoints/{endpoint_id}/rotate-secret")
    assert api.done(answer)["status"] == "succeeded"
    return str(answer.json["secret"])


def dispatched(api: Api, endpoint_id: str) -> Dispatch:
    """What a worker would send to the endpoint now."""
    api.contact(external_id=uuid.uuid4().hex)
    [dispatch] = attempts.claim(lanes.FAST, {endpoint_id: 1})
    return dispatch


def accepts(secret: str, dispatch: Dispatch) -> bool:
    """Whether Stripe's verifier takes the delivery for genuine."""
    header = dispatch.headers()["X-Service-Signature"]
    try:
        return bool(stripe.WebhookSignature.verify_header(dispatch.body.decode(), header, secret, tolerance=300))
    except stripe.SignatureVerificationError:
        return False


def test_a_rotation_answers_with_a_new_secret(api: Api) -> None:
    endpoint_id, before = make_endpoint(api.workspace_id, BODY["address"])

    answer = api.post(f"webhooks/endpoints/{endpoint_id}/rotate-secret")

    assert answer.status_code == 202
    assert answer.json["secret"].startswith("whsec_")
    assert answer.json["secret"] != before
    job = api.done(answer)
    assert (job["kind"], job["status"]) == ("endpoints.rotate_secret", "succeeded")
    assert (job["resource"]["type"], job["resource"]["id"]) == ("endpoint", endpoint_id)
    assert "secret" not in job


def test_a_caller_who_waits_for_a_rotation_gets_the_endpoint_and_the_secret_beside_it(api: Api) -> None:
    endpoint_id = api.endpoint()

    with working():
        answer = api.post(f"webhooks/endpoints/{endpoint_id}/rotate-secret", {}, wait=10)

    assert (answer.status_code, sorted(answer.json)) == (200, ["data", "secret"])
    assert answer.json["data"] == api.get(f"webhooks/endpoints/{endpoint_id}").json["data"]


def test_a_rotated_secret_is_shown_once(api: Api) -> None:
    endpoint_id, key = api.endpoint(), str(uuid.uuid4())
    first = api.post(f"webhooks/endpoints/{endpoint_id}/rotate-secret", key=key)
    api.apply()
    stored = one("SELECT secret FROM endpoints")

    again = api.post(f"webhooks/endpoints/{endpoint_id}/rotate-secret", key=key)
    waited = api.post(f"webhooks/endpoints/{endpoint_id}/rotate-secret", key=key, wait=5)

    assert [answer.headers["Idempotent-Replayed"] for answer in (again, waited)] == ["true", "true"]
    assert (again.status_code, waited.status_code) == (202, 200)
    assert again.json["data"]["id"] == first.json["data"]["id"]
    assert "secret" not in again.json | waited.json
    assert "whsec_" not in again.text + waited.text + api.get("jobs").text
    assert bytes(one("SELECT secret FROM endpoints")) == bytes(stored)


def test_a_rotated_secret_is_stored_encrypted(api: Api) -> None:
    endpoint_id = api.endpoint()
    answer = api.post(f"webhooks/endpoints/{endpoint_id}/rotate-secret")
    secret = answer.json["secret"]
    waiting = str(database.rows("SELECT payload FROM jobs"))
    api.apply()

    sealed = bytes(one("SELECT secret FROM endpoints"))
    assert vault.decrypt(settings().secret_keys, sealed) == secret
    assert "sealed_secret" in waiting
    assert "whsec_" not in waiting
    assert secret.encode() not in sealed
    assert one("SELECT count(*) FROM jobs WHERE payload IS NOT NULL") == 0


def test_for_a_day_the_secret_before_signs_too(api: Api) -> None:
    endpoint_id, before = make_endpoint(api.workspace_id, BODY["address"])
    now = rotate(api, endpoint_id)

    dispatch = dispatched(api, endpoint_id)

    assert dispatch.secrets == (now, before)
    assert dispatch.headers()["X-Service-Signature"].count("v1=") == 2
    assert accepts(now, dispatch)
    assert accepts(before, dispatch)
    assert 86_000 < one("SELECT extract(epoch FROM previous_secret_until - now()) FROM endpoints") <= 86_400

    database.rows("UPDATE endpoints SET previous_secret_until = previous_secret_until - interval '24 hours'")
    dispatch = dispatched(api, endpoint_id)

    assert dispatch.secrets == (now,)
    assert accepts(now, dispatch)
    assert not accepts(before, dispatch)


def test_after_two_rotations_only_the_newest_two_secrets_sign(api: Api) -> None:
    endpoint_id, first = make_endpoint(api.workspace_id, BODY["address"])
    answers = [api.post(f"webhooks/endpoints/{endpoint_id}/rotate-secret") for _ in range(2)]
    api.apply()  # both in one transaction
    second, third = (answer.json["secret"] for answer in answers)

    dispatch = dispatched(api, endpoint_id)

    assert dispatch.secrets == (third, second)
    assert [accepts(secret, dispatch) for secret in (third, second, first)] == [True, True, False]


def test_the_secret_of_an_endpoint_can_be_rotated_before_its_job_has_run(api: Api) -> None:
    made = api.post("webhooks/endpoints", BODY)
    endpoint_id = made.json["data"]["resource"]["id"]

    secret = rotate(api, endpoint_id)

    assert dispatched(api, endpoint_id).secrets == (secret, made.json["secret"])


def test_a_rotation_changes_one_endpoint_alone(api: Api) -> None:
    other, secret = make_endpoint(api.workspace_id, BODY["address"])
    rotate(api, api.endpoint())

    assert dispatched(api, other).secrets == (secret,)


def test_a_rotation_behind_a_delete_fails_with_not_found(api: Api) -> None:
    endpoint_id = api.endpoint()
    api.delete(f"webhooks/endpoints/{endpoint_id}")
    rotating = api.post(f"webhooks/endpoints/{endpoint_id}/rotate-secret")

    api.apply()

    assert api.job(rotating)["problem"]["status"] == 404


# A test


@pytest.mark.parametrize("kind", catalogue.EVENT_KINDS)
def test_a_test_sends_a_sample_of_the_kind(api: Api, kind: str) -> None:
    endpoint_id, secret = make_endpoint(api.workspace_id, BODY["address"])
    answer = api.post(f"webhooks/endpoints/{endpoint_id}/test", {"kind": kind})

    job = api.done(answer)

    assert (job["kind"], job["status"], job["resource"]["type"]) == ("endpoints.test", "succeeded", "delivery")
    delivery = api.get(job["resource"]["url"].removeprefix("https://bellhop.test")).json["data"]
    assert (delivery["endpoint_id"], delivery["kind"], delivery["status"]) == (endpoint_id, kind, "pending")
    [event] = event_bodies(api.workspace_id)
    sample = next(each["sample"] for each in api.get("webhooks/events").json["data"] if each["kind"] == kind)
    assert event == sample | {"id": delivery["event_id"], "created_at": event["created_at"]}
    assert abs((clock.now() - datetime.fromisoformat(event["created_at"])).total_seconds()) < 60
    assert database.rows("SELECT contact_id, job_id FROM events") == [(None, job["id"])]
    [dispatch] = attempts.claim(lanes.FAST, {endpoint_id: 10})
    assert json.loads(dispatch.body) == event
    assert accepts(secret, dispatch)


def test_a_test_goes_to_its_endpoint_alone_whatever_that_wants(api: Api) -> None:
    tested, _ = api.endpoint(events=["tag.added"]), api.endpoint(events=["*"])

    api.done(api.post(f"webhooks/endpoints/{tested}/test", {"kind": "contact.created"}))

    assert all_of("SELECT endpoint_id FROM deliveries") == [tested]


def test_a_test_between_other_writes_disturbs_none_of_them(api: Api) -> None:
    tested, other = api.endpoint(), api.endpoint()
    api.post("contacts", {"external_id": "before"})
    testing = api.post(f"webhooks/endpoints/{tested}/test", {"kind": "tag.removed"})
    api.post("contacts", {"external_id": "after"})

    api.apply()

    kinds = "SELECT kind FROM deliveries WHERE endpoint_id = %s"
    assert sorted(all_of(kinds, tested)) == ["contact.created", "contact.created", "tag.removed"]
    assert all_of(kinds, other) == ["contact.created"] * 2
    assert api.job(testing)["resource"]["id"] == one("SELECT id FROM deliveries WHERE kind = 'tag.removed'")


def test_a_caller_who_waits_for_a_test_gets_the_delivery(api: Api) -> None:
    endpoint_id = api.endpoint()

    with working():
        answer = api.post(f"webhooks/endpoints/{endpoint_id}/test", {"kind": "tag.added"}, wait=10)

    assert answer.status_code == 200
    shown = api.get(f"webhooks/deliveries/{answer.json['data']['id']}").json["data"]
    assert answer.json["data"] == {name: shown[name] for name in answer.json["data"]}


def test_one_test_with_one_key_sends_once(api: Api) -> None:
    endpoint_id, key = api.endpoint(), str(uuid.uuid4())

    for _ in range(2):
        api.done(api.post(f"webhooks/endpoints/{endpoint_id}/test", {"kind": "tag.added"}, key=key))

    assert statuses() == ["pending"]


def test_a_test_of_a_stopped_endpoint_fails_and_says_to_enable_it(api: Api) -> None:
    endpoint_id = api.endpoint()
    database.rows("UPDATE endpoints SET state = 'stopped'")

    job = api.done(api.post(f"webhooks/endpoints/{endpoint_id}/test", {"kind": "tag.added"}))

    assert (job["status"], job["resource"]) == ("failed", None)
    assert (job["problem"]["status"], job["problem"]["type"].rpartition("/")[2]) == (409, "conflict")
    assert "Enable it first" in job["problem"]["detail"]
    assert one("SELECT count(*) FROM events") == 0
    assert statuses() == []


def test_an_endpoint_can_be_tested_before_its_job_has_run(api: Api) -> None:
    endpoint_id = api.post("webhooks/endpoints", BODY).json["data"]["resource"]["id"]

    job = api.done(api.post(f"webhooks/endpoints/{endpoint_id}/test", {"kind": "tag.added"}))

    assert job["status"] == "succeeded"
    assert all_of("SELECT endpoint_id FROM deliveries") == [endpoint_id]


def test_a_test_behind_a_delete_fails_with_not_found(api: Api) -> None:
    endpoint_id = api.endpoint()
    api.delete(f"webhooks/endpoints/{endpoint_id}")
    testing = api.post(f"webhooks/endpoints/{endpoint_id}/test", {"kind": "tag.added"})

    api.apply()

    assert api.job(testing)["problem"]["status"] == 404


def test_a_test_before_a_delete_in_the_same_batch_has_its_delivery(api: Api) -> None:
    endpoint_id = api.endpoint()
    testing = api.post(f"webhooks/endpoints/{endpoint_id}/test", {"kind": "tag.added"})
    api.delete(f"webhooks/endpoints/{endpoint_id}")

    api.apply()

    # Written out first; the scheduler cancels it with the rest.
    assert all_of("SELECT id FROM deliveries") == [api.job(testing)["resource"]["id"]]


def test_an_endpoint_that_another_workspace_is_about_to_make_cannot_be_rotated_or_tested(api: Api, others: Api) -> None:
    endpoint_id = others.post("webhooks/endpoints", BODY).json["data"]["resource"]["id"]

    assert api.post(f"webhooks/endpoints/{endpoint_id}/rotate-secret").status_code == 404
    assert api.post(f"webhooks/endpoints/{endpoint_id}/test", {"kind": "tag.added"}).status_code == 404


@pytest.mark.parametrize(
    ("kind", "payload"),
    [("rotate_secret", {"sealed_secret": "sealed"}), ("test", {"kind": "tag.added"})],
)
def test_a_job_about_an_endpoint_of_another_workspace_finds_nothing(
    api: Api, others: Api, kind: str, payload: dict[str, Any]
) -> None:
    foreign, secret = make_endpoint(others.workspace_id, BODY["address"])
    payload = {**payload, "endpoint_id": foreign}

    job, _ = writes.accept(Write(api.workspace_id, f"endpoints.{kind}", payload, "trace", foreign))
    api.apply()

    assert Job.find(api.workspace_id, job.id).problem["status"] == 404
    assert statuses() == []
    assert dispatched(others, foreign).secrets == (secret,)

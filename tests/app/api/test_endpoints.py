from __future__ import annotations

from typing import Any

import pytest

from app import database
from app.config import settings
from app.domain import endpoints
from app.lib import vault
from tests.cast import Api, all_of, one

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


def test_an_address_of_an_allowed_network_is_taken(api: Api) -> None:
    assert api.post("webhooks/endpoints", BODY | {"address": "https://127.0.0.1:8443/"}).status_code == 202


@pytest.mark.parametrize(
    "change",
    [{"address": "https://other.example/"}, {"events": ["*"]}, {"description": "Other"}, {"description": None}],
    ids=str,
)
def test_a_patch_changes_what_is_given(api: Api, change: dict[str, Any]) -> None:
    endpoint_id = api.done(api.post("webhooks/endpoints", BODY | {"description": "The shop"}))["resource"]["id"]
    before = api.get(f"webhooks/endpoints/{endpoint_id}").json["data"]

    job = api.done(api.patch(f"webhooks/endpoints/{endpoint_id}", change))

    assert (job["status"], job["resource"]["id"]) == ("succeeded", endpoint_id)
    assert api.get(f"webhooks/endpoints/{endpoint_id}").json["data"] == before | change


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
    database.rows("UPDATE endpoints SET updated_at = now() - interval '61 minutes' WHERE id = %s", (dropped,))

    assert endpoints.drop_deleted() == 1
    assert all_of("SELECT id FROM endpoints") == [kept]


def test_rows_of_deleted_endpoints_stay_while_a_delivery_is_unfinished(api: Api) -> None:
    endpoint_id = api.endpoint()
    api.contact(email="ada@example.com")
    api.done(api.delete(f"webhooks/endpoints/{endpoint_id}"))
    database.rows("UPDATE endpoints SET updated_at = now() - interval '61 minutes'")

    assert endpoints.drop_deleted() == 0

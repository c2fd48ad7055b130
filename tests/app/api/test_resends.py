"""Enabling endpoints, resending deliveries, and their entries in the audit log."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from app import database
from app.domain.deliveries.deliveries import BODY_GONE
from app.lib import clock, ids
from tests.cast import KEY, Api, all_of, make_endpoint, one, sweep


@pytest.fixture
def endpoint(api: Api) -> str:
    return api.endpoint()


@pytest.fixture
def delivery(api: Api, endpoint: str) -> Callable[..., str]:
    """Creates a delivery of that status, with further columns as given."""

    def make(status: str = "failed", **columns: Any) -> str:
        contact = api.contact(external_id=ids.new("x"))
        delivery_id = str(
            one(
                "SELECT deliveries.id FROM deliveries JOIN events ON events.id = event_id WHERE events.contact_id = %s",
                contact["id"],
            )
        )
        columns |= {"status": status, "due_at": clock.now() if status == "pending" else None}
        changes = ", ".join(f"{name} = %s" for name in columns)
        database.rows(f"UPDATE deliveries SET {changes} WHERE id = %s", (*columns.values(), delivery_id))
        return delivery_id

    return make


def stop(endpoint: str) -> None:
    database.rows(
        "UPDATE endpoints SET state = 'stopped', stop_reason = 'Gone.', stopped_at = now(), consecutive_failures = 50,"
        " probe_at = now(), slow_until = now() + interval '1 hour' WHERE id = %s",
        (endpoint,),
    )


def status_of(delivery_id: str) -> str:
    return str(one("SELECT status FROM deliveries WHERE id = %s", delivery_id))


def refused(api: Api, answer: Any) -> str:
    """What the problem of a job says that is accepted and then fails with a conflict."""
    job = api.done(answer)
    assert (job["status"], job["problem"]["status"]) == ("failed", 409)
    assert job["problem"]["type"].endswith("/conflict")
    return str(job["problem"]["detail"])


def refused_at_once(answer: Any) -> str:
    assert (answer.status_code, answer.json["type"]) == (409, "https://bellhop.test/problems/conflict")
    return str(answer.json["detail"])


# Enable


def test_a_stopped_endpoint_is_enabled_as_if_it_had_never_failed(api: Api, endpoint: str) -> None:
    stop(endpoint)

    job = api.done(api.post(f"webhooks/endpoints/{endpoint}/enable"))

    assert (job["kind"], job["status"]) == ("endpoints.enable", "succeeded")
    assert (job["resource"]["type"], job["resource"]["id"]) == ("endpoint", endpoint)
    shown = api.get(f"webhooks/endpoints/{endpoint}").json["data"]
    assert (shown["state"], shown["stop_reason"], shown["stopped_at"]) == ("active", None, None)
    assert shown["consecutive_failures"] == 0
    assert database.rows("SELECT probe_at, slow_until FROM endpoints") == [(None, None)]


@pytest.mark.parametrize(
    ("body", "becomes"),
    [(None, "held"), ({}, "held"), ({"release_held": False}, "held"), ({"release_held": True}, "pending")],
)
def test_what_was_held_is_released_if_asked_for(
    api: Api, endpoint: str, delivery: Callable[..., str], body: Any, becomes: str
) -> None:
    stop(endpoint)
    held, failed = delivery("held"), delivery("failed")

    api.done(api.post(f"webhooks/endpoints/{endpoint}/enable", body))
    sweep(endpoint)

    assert (status_of(held), status_of(failed)) == (becomes, "failed")


def test_an_active_endpoint_may_be_enabled_and_what_it_holds_released(
    api: Api, endpoint: str, delivery: Callable[..., str]
) -> None:
    held = delivery("held")

    job = api.done(api.post(f"webhooks/endpoints/{endpoint}/enable", {"release_held": True}))
    sweep(endpoint)

    assert job["status"] == "succeeded"
    assert status_of(held) == "pending"


def test_what_happens_before_an_endpoint_is_enabled_is_held_and_what_happens_after_is_not(
    api: Api, endpoint: str
) -> None:
    stop(endpoint)
    api.post("contacts", {"external_id": "before"})
    api.post(f"webhooks/endpoints/{endpoint}/enable")
    api.post("contacts", {"external_id": "after"})

    api.apply()

    assert all_of("SELECT status FROM deliveries ORDER BY id") == ["held", "pending"]


def test_what_happens_in_the_same_batch_before_an_endpoint_is_enabled_is_released_with_the_rest(
    api: Api, endpoint: str
) -> None:
    stop(endpoint)
    api.post("contacts", {"external_id": "before"})
    api.post(f"webhooks/endpoints/{endpoint}/enable", {"release_held": True})

    api.apply()
    sweep(endpoint)

    assert all_of("SELECT status FROM deliveries") == ["pending"]


def test_a_caller_who_waits_gets_the_endpoint(api: Api, endpoint: str) -> None:
    stop(endpoint)
    accepted = api.post(f"webhooks/endpoints/{endpoint}/enable", key=KEY)
    api.apply()

    waited = api.post(f"webhooks/endpoints/{endpoint}/enable", key=KEY, wait=5)

    assert (accepted.status_code, waited.status_code) == (202, 200)
    assert waited.json["data"]["state"] == "active"


def test_an_endpoint_that_is_about_to_be_deleted_is_not_enabled(api: Api, endpoint: str) -> None:
    api.delete(f"webhooks/endpoints/{endpoint}")

    job = api.done(api.post(f"webhooks/endpoints/{endpoint}/enable"))

    assert (job["status"], job["problem"]["status"]) == ("failed", 404)
    assert all_of("SELECT action FROM audit_entries ORDER BY id") == ["endpoints.create", "endpoints.delete"]


def test_a_deletion_cancels_what_is_on_its_way(api: Api, endpoint: str, delivery: Callable[..., str]) -> None:
    waiting, held, failed = delivery("pending"), delivery("held"), delivery("failed")

    api.done(api.delete(f"webhooks/endpoints/{endpoint}"))
    sweep(endpoint)

    assert [status_of(each) for each in (waiting, held, failed)] == ["cancelled", "cancelled", "failed"]


# Resend one


@pytest.mark.parametrize("status", ["failed", "held"])
def test_a_delivery_that_failed_or_is_held_goes_out_again(
    api: Api, endpoint: str, delivery: Callable[..., str], status: str
) -> None:
    delivery_id = delivery(status, attempts=6, tries=6, last_error="Refused.")

    job = api.done(api.post(f"webhooks/deliveries/{delivery_id}/resend"))

    assert (job["kind"], job["status"]) == ("deliveries.resend", "succeeded")
    assert (job["resource"]["type"], job["resource"]["id"]) == ("delivery", delivery_id)
    assert job["resource"]["url"].endswith(f"/webhooks/deliveries/{delivery_id}")
    shown = api.get(f"webhooks/deliveries/{delivery_id}").json["data"]
    assert (shown["status"], shown["attempts"], shown["last_error"]) == ("pending", 6, "Refused.")
    assert shown["next_attempt_at"] is not None
    assert database.rows("SELECT tries, trigger, due_at <= now() FROM deliveries") == [(0, "resend", True)]


def test_a_delivered_one_stays_and_goes_out_as_a_new_delivery(
    api: Api, endpoint: str, delivery: Callable[..., str]
) -> None:
    delivery_id = delivery("delivered", attempts=1)
    before = api.get(f"webhooks/deliveries/{delivery_id}").json["data"]

    job = api.done(api.post(f"webhooks/deliveries/{delivery_id}/resend", {}))

    made = api.get(f"webhooks/deliveries/{job['resource']['id']}").json["data"]
    assert api.get(f"webhooks/deliveries/{delivery_id}").json["data"] == before
    assert (made["resent_from"], made["status"], made["attempts"]) == (delivery_id, "pending", 0)
    assert (made["event_id"], made["body"]) == (before["event_id"], before["body"])


def test_what_was_answered_to_a_new_delivery_is_erased_with_the_contact_too(
    api: Api, endpoint: str, delivery: Callable[..., str]
) -> None:
    made = api.done(api.post(f"webhooks/deliveries/{delivery('delivered')}/resend"))["resource"]["id"]
    database.rows(
        "INSERT INTO attempts (delivery_id, number, at, duration_ms, response_body) VALUES (%s, 1, now(), 1, 'Hi')",
        (made,),
    )

    api.done(api.delete(f"contacts/{one('SELECT id FROM contacts')}"))

    assert api.get(f"webhooks/deliveries/{made}").json["data"]["attempts_log"][0]["response_body"] is None


def test_a_caller_who_waits_gets_the_delivery(api: Api, endpoint: str, delivery: Callable[..., str]) -> None:
    failed, delivered = delivery("failed"), delivery("delivered")
    keys = {failed: KEY, delivered: KEY.replace("7f", "8f")}
    for delivery_id, key in keys.items():
        api.done(api.post(f"webhooks/deliveries/{delivery_id}/resend", key=key))

    again, anew = (api.post(f"webhooks/deliveries/{each}/resend", key=keys[each], wait=5) for each in keys)

    assert (again.status_code, again.json["data"]["id"]) == (200, failed)
    assert (anew.status_code, anew.json["data"]["resent_from"]) == (201, delivered)
    assert anew.headers["Location"].endswith(anew.json["data"]["id"])


def test_a_delivery_is_resent_once_by_two_requests(api: Api, endpoint: str, delivery: Callable[..., str]) -> None:
    delivery_id = delivery("failed")
    first, second = (api.post(f"webhooks/deliveries/{delivery_id}/resend") for _ in range(2))

    api.apply()

    assert [api.job(each)["status"] for each in (first, second)] == ["succeeded"] * 2
    assert all_of("SELECT id FROM deliveries") == [delivery_id]
    assert all_of("SELECT count(*) FROM audit_entries WHERE action = 'deliveries.resend'") == [1]


def test_nothing_is_resent_to_a_stopped_endpoint(api: Api, endpoint: str, delivery: Callable[..., str]) -> None:
    delivery_id = delivery("held")
    stop(endpoint)

    assert "Enable it first" in refused(api, api.post(f"webhooks/deliveries/{delivery_id}/resend"))
    assert status_of(delivery_id) == "held"


def test_a_resend_behind_an_enable_succeeds(api: Api, endpoint: str, delivery: Callable[..., str]) -> None:
    delivery_id = delivery("failed")
    stop(endpoint)
    api.post(f"webhooks/endpoints/{endpoint}/enable")

    job = api.done(api.post(f"webhooks/deliveries/{delivery_id}/resend"))

    assert job["status"] == "succeeded"
    assert status_of(delivery_id) == "pending"


@pytest.mark.parametrize("status", ["failed", "delivered"])
def test_nothing_is_resent_to_a_deleted_endpoint(
    api: Api, endpoint: str, delivery: Callable[..., str], status: str
) -> None:
    delivery_id = delivery(status)
    api.done(api.delete(f"webhooks/endpoints/{endpoint}"))
    sweep(endpoint)

    assert "deleted" in refused(api, api.post(f"webhooks/deliveries/{delivery_id}/resend"))


def test_a_cancelled_delivery_is_refused_at_once(api: Api, endpoint: str, delivery: Callable[..., str]) -> None:
    assert "deleted" in refused_at_once(api.post(f"webhooks/deliveries/{delivery('cancelled')}/resend"))


def test_a_delivery_without_its_body_is_refused_at_once_and_left_as_it_was(
    api: Api, endpoint: str, delivery: Callable[..., str]
) -> None:
    delivery_id = delivery("failed", last_error="Refused.")
    database.rows("DELETE FROM events")
    before = api.get(f"webhooks/deliveries/{delivery_id}").json

    assert refused_at_once(api.post(f"webhooks/deliveries/{delivery_id}/resend")) == BODY_GONE
    assert api.get(f"webhooks/deliveries/{delivery_id}").json == before


def test_a_body_that_is_lost_before_the_job_runs_fails_it(
    api: Api, endpoint: str, delivery: Callable[..., str]
) -> None:
    accepted = api.post(f"webhooks/deliveries/{delivery('failed')}/resend")
    database.rows("DELETE FROM events")

    assert refused(api, accepted) == BODY_GONE


# Resend many


def test_failed_and_held_deliveries_go_out_again(api: Api, endpoint: str, delivery: Callable[..., str]) -> None:
    failed, held, delivered = delivery("failed"), delivery("held"), delivery("delivered")
    before = api.get(f"webhooks/deliveries/{delivered}").json

    accepted = api.post(f"webhooks/endpoints/{endpoint}/resend")
    job = api.done(accepted)

    assert (job["kind"], job["status"]) == ("endpoints.resend", "succeeded")
    assert job["resource"] == accepted.json["data"]["resource"]
    sweep_id = job["resource"]["id"]
    assert job["resource"]["type"] == "sweep"
    running = api.get(f"webhooks/sweeps/{sweep_id}").json["data"]
    assert running == {
        "id": sweep_id,
        "endpoint_id": endpoint,
        "action": "resend",
        "status": "running",
        "count": 2,
        "changed": 0,
        "skipped": 0,
        "statuses": ["failed", "held"],
        "kinds": None,
        "since": None,
        "until": None,
        "created_at": running["created_at"],
        "finished_at": None,
    }
    sweep(endpoint)
    finished = api.get(f"webhooks/sweeps/{sweep_id}").json["data"]
    assert finished == running | {"status": "finished", "changed": 2, "finished_at": finished["finished_at"]}
    assert finished["finished_at"] is not None
    assert (status_of(failed), status_of(held)) == ("pending", "pending")
    assert api.get(f"webhooks/deliveries/{delivered}").json == before


def test_a_caller_who_waits_gets_the_sweep(api: Api, endpoint: str) -> None:
    api.done(api.post(f"webhooks/endpoints/{endpoint}/resend", {}, key=KEY))

    answer = api.post(f"webhooks/endpoints/{endpoint}/resend", {}, key=KEY, wait=5)

    assert answer.status_code == 201
    assert answer.json["data"]["action"] == "resend"
    assert answer.headers["Location"].endswith(f"/webhooks/sweeps/{answer.json['data']['id']}")


def test_delivered_ones_go_out_too_if_asked_for(api: Api, endpoint: str, delivery: Callable[..., str]) -> None:
    delivered, failed = delivery("delivered"), delivery("failed")

    api.done(api.post(f"webhooks/endpoints/{endpoint}/resend", {"statuses": ["delivered"]}))
    sweep(endpoint)

    assert (status_of(delivered), status_of(failed)) == ("delivered", "failed")
    assert all_of("SELECT status FROM deliveries WHERE resent_from = %s", delivered) == ["pending"]


def test_a_choice_is_kept_to_the_microsecond_and_shown(api: Api, endpoint: str, delivery: Callable[..., str]) -> None:
    at = clock.now().replace(microsecond=500) - timedelta(days=1)
    early = delivery("failed", created_at=at - timedelta(microseconds=1))
    chosen = delivery("failed", created_at=at)
    late = delivery("failed", created_at=at + timedelta(microseconds=1))
    other = delivery("failed", created_at=at, kind="tag.added")
    body = {
        "statuses": ["failed"],
        "kinds": ["contact.created"],
        "since": at.isoformat(),
        "until": (at + timedelta(microseconds=1)).isoformat(),
    }

    dry = api.post(f"webhooks/endpoints/{endpoint}/resend", body | {"dry_run": True})
    job = api.done(api.post(f"webhooks/endpoints/{endpoint}/resend", body))
    sweep(endpoint)

    assert (dry.status_code, dry.json["data"]["count"]) == (200, 1)
    shown = api.get(f"webhooks/sweeps/{job['resource']['id']}").json["data"]
    assert (shown["count"], shown["changed"], shown["kinds"]) == (1, 1, ["contact.created"])
    assert (shown["since"], shown["until"]) == (dry.json["data"]["since"], dry.json["data"]["until"])
    assert [status_of(each) for each in (early, chosen, late, other)] == ["failed", "pending", "failed", "failed"]


def test_a_dry_run_counts_and_does_nothing(api: Api, endpoint: str, delivery: Callable[..., str]) -> None:
    gone = delivery("failed")
    database.rows("DELETE FROM events")
    made = [delivery("failed"), delivery("held"), delivery("delivered")]
    before = one("SELECT count(*) FROM jobs")

    answer = api.post(f"webhooks/endpoints/{endpoint}/resend", {"dry_run": True})

    assert answer.status_code == 200
    assert answer.json["data"] == {
        "dry_run": True,
        "count": 2,
        "gone": 1,
        "statuses": ["failed", "held"],
        "kinds": None,
        "since": None,
        "until": None,
    }
    assert [status_of(each) for each in (gone, *made)] == ["failed", "failed", "held", "delivered"]
    assert one("SELECT count(*) FROM jobs") == before
    assert one("SELECT count(*) FROM sweeps") == 0


def test_what_has_no_body_is_skipped(api: Api, endpoint: str, delivery: Callable[..., str]) -> None:
    gone = delivery("failed", last_error="Refused.")
    database.rows("DELETE FROM events")
    sent = delivery("failed")

    job = api.done(api.post(f"webhooks/endpoints/{endpoint}/resend"))
    sweep(endpoint)

    shown = api.get(f"webhooks/sweeps/{job['resource']['id']}").json["data"]
    assert (shown["count"], shown["changed"], shown["skipped"]) == (2, 1, 1)
    assert (status_of(gone), status_of(sent)) == ("failed", "pending")
    assert api.get(f"webhooks/deliveries/{gone}").json["data"]["last_error"] == "Refused."


def test_many_are_not_resent_to_a_stopped_endpoint(api: Api, endpoint: str) -> None:
    stop(endpoint)

    assert "Enable it first" in refused(api, api.post(f"webhooks/endpoints/{endpoint}/resend"))
    assert one("SELECT count(*) FROM sweeps") == 0


def test_an_endpoint_can_be_resent_to_and_enabled_before_its_job_has_run(api: Api) -> None:
    body = {"address": "https://shop.example/hooks", "events": ["*"]}
    endpoint = api.post("webhooks/endpoints", body).json["data"]["resource"]["id"]

    answers = [api.post(f"webhooks/endpoints/{endpoint}/{action}") for action in ("enable", "resend")]
    dry = api.post(f"webhooks/endpoints/{endpoint}/resend", {"dry_run": True})
    api.apply()

    assert (dry.status_code, dry.json["data"]["count"]) == (200, 0)
    assert [api.job(answer)["status"] for answer in answers] == ["succeeded"] * 2


def test_deliveries_of_another_workspace_to_another_endpoint_are_left_alone(
    api: Api, others: Api, endpoint: str
) -> None:
    others.endpoint()
    others.contact(email="eve@example.com")
    database.rows("UPDATE deliveries SET status = 'failed', due_at = NULL")

    api.done(api.post(f"webhooks/endpoints/{endpoint}/resend"))
    sweep(endpoint)

    assert all_of("SELECT status FROM deliveries") == ["failed"]


def test_sweeps_are_found_by_endpoint_and_action(api: Api, endpoint: str) -> None:
    other = api.endpoint("https://other.example/")
    api.done(api.post(f"webhooks/endpoints/{endpoint}/resend"))
    api.done(api.post(f"webhooks/endpoints/{endpoint}/enable", {"release_held": True}))
    api.done(api.delete(f"webhooks/endpoints/{other}"))

    def found(query: str) -> list[tuple[str, str]]:
        shown = api.get(f"webhooks/sweeps{query}").json
        return [(each["endpoint_id"], each["action"]) for each in shown["data"]]

    assert found("") == [(other, "cancel"), (endpoint, "release"), (endpoint, "resend")]
    assert found(f"?endpoint_id={endpoint}") == [(endpoint, "release"), (endpoint, "resend")]
    assert found("?action=resend") == [(endpoint, "resend")]
    assert found(f"?action=cancel&endpoint_id={endpoint}") == []


# The audit log


def test_the_audit_log_shows_who_changed_what(api: Api, delivery: Callable[..., str], endpoint: str) -> None:
    failed, delivered = delivery("failed"), delivery("delivered")
    api.done(api.patch(f"webhooks/endpoints/{endpoint}", {"description": "The shop"}))
    api.done(api.post(f"webhooks/endpoints/{endpoint}/enable", {"release_held": True}))
    api.done(api.post(f"webhooks/deliveries/{failed}/resend"))
    anew = api.done(api.post(f"webhooks/deliveries/{delivered}/resend"))["resource"]["id"]
    resent = api.done(api.post(f"webhooks/endpoints/{endpoint}/resend", {"kinds": ["tag.added"]}))["resource"]["id"]
    api.done(api.delete(f"webhooks/endpoints/{endpoint}"))

    shown = api.get("webhooks/audit-log").json

    of_endpoint = {"type": "endpoint", "id": endpoint}
    filters = {"statuses": ["failed", "held"], "kinds": ["tag.added"], "since": None, "until": None}
    assert [(each["action"], each["target"], each["detail"]) for each in reversed(shown["data"])] == [
        ("endpoints.create", of_endpoint, {"address": "https://shop.example/hooks", "events": ["*"]}),
        ("endpoints.update", of_endpoint, {"description": "The shop"}),
        ("endpoints.enable", of_endpoint, {"release_held": True}),
        ("deliveries.resend", {"type": "delivery", "id": failed}, {"endpoint_id": endpoint, "sent_as": failed}),
        ("deliveries.resend", {"type": "delivery", "id": delivered}, {"endpoint_id": endpoint, "sent_as": anew}),
        ("endpoints.resend", of_endpoint, {"sweep_id": resent, "count": 0, **filters}),
        ("endpoints.delete", of_endpoint, {}),
    ]
    token_id = one("SELECT id FROM tokens")
    assert {(each["actor"]["type"], each["actor"]["id"]) for each in shown["data"]} == {("token", token_id)}
    entry = shown["data"][0]
    assert set(entry) == {"id", "action", "actor", "target", "detail", "reason", "ticket", "created_at"}
    assert entry["id"].startswith("aud_")
    assert all_of("SELECT count(*) FROM audit_entries WHERE job_id IS NULL OR trace_id = ''") == [0]


def test_the_audit_log_is_found_by_endpoint_and_action(api: Api, delivery: Callable[..., str], endpoint: str) -> None:
    other = api.endpoint("https://other.example/", events=["tag.added"])
    delivery_id = delivery("failed")
    api.done(api.post(f"webhooks/deliveries/{delivery_id}/resend"))

    def found(query: str) -> list[tuple[str, str]]:
        shown = api.get(f"webhooks/audit-log?{query}").json["data"]
        return [(each["action"], each["target"]["id"]) for each in shown]

    resent, created = ("deliveries.resend", delivery_id), ("endpoints.create", endpoint)
    assert found(f"endpoint_id={endpoint}") == [resent, created]
    assert found(f"endpoint_id={other}") == [("endpoints.create", other)]
    assert found("action=deliveries.resend") == [resent]
    assert found(f"action=endpoints.create&endpoint_id={endpoint}") == [created]
    database.rows("DELETE FROM deliveries")
    assert found(f"endpoint_id={endpoint}") == [resent, created]


def test_the_audit_log_holds_no_secret(api: Api, endpoint: str) -> None:
    assert "secret" not in str(database.rows("SELECT detail FROM audit_entries"))


def test_what_a_command_did_is_said_to_be_its_work(api: Api) -> None:
    make_endpoint(api.workspace_id, "https://shop.example/hooks")

    [entry] = api.get("webhooks/audit-log").json["data"]

    assert (entry["action"], entry["actor"]) == ("endpoints.create", {"type": "command", "id": None})


def test_what_was_refused_is_not_in_the_audit_log(api: Api, endpoint: str, delivery: Callable[..., str]) -> None:
    delivery_id = delivery("held", leased_until=clock.now() + timedelta(minutes=1))
    assert "in progress" in refused(api, api.post(f"webhooks/deliveries/{delivery_id}/resend"))

    assert [each["action"] for each in api.get("webhooks/audit-log").json["data"]] == ["endpoints.create"]


def test_new_secrets_and_tests_are_in_the_audit_log(api: Api, endpoint: str) -> None:
    api.done(api.post(f"webhooks/endpoints/{endpoint}/rotate-secret"))
    sent = api.done(api.post(f"webhooks/endpoints/{endpoint}/test", {"kind": "tag.added"}))["resource"]["id"]

    tested, rotated, _ = api.get(f"webhooks/audit-log?endpoint_id={endpoint}").json["data"]

    assert (rotated["action"], rotated["detail"]) == ("endpoints.rotate_secret", {})
    assert (tested["action"], tested["detail"]) == ("endpoints.test", {"kind": "tag.added", "delivery_id": sent})

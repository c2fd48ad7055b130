from __future__ import annotations

import json
from datetime import timedelta

import pytest

from app import database
from app.domain.deliveries import lanes
from app.domain.deliveries.attempts import Outcome, claim, record
from app.lib import clock, ids
from app.lib.json import timestamp
from app.outbound import answered
from tests.cast import Api, all_of, one


@pytest.fixture
def deliveries(api: Api) -> list[str]:
    """Identifiers of three deliveries, newest first: tag.added pending, contact.created failed, another delivered."""
    first, second = api.endpoint(events=["contact.created"]), api.endpoint(events=["*"])
    api.contact(email="ada@example.com", tags=["vip"])
    found = api.get("webhooks/deliveries").json["data"]
    by_what = {(delivery["endpoint_id"], delivery["kind"]): delivery["id"] for delivery in found}
    delivered, failed = by_what[first, "contact.created"], by_what[second, "contact.created"]
    database.rows(
        "UPDATE deliveries SET status = 'delivered', due_at = NULL, attempts = 1, delivered_at = now(),"
        " last_status = 204 WHERE id = %s",
        (delivered,),
    )
    database.rows(
        "UPDATE deliveries SET status = 'failed', due_at = NULL, attempts = 6, last_error = 'Broken.',"
        " last_error_code = 'status', last_status = 503,"
        " created_at = now() - interval '1 day' WHERE id = %s",
        (failed,),
    )
    return [by_what[second, "tag.added"], failed, delivered]


def test_a_new_delivery_is_pending_and_due(api: Api) -> None:
    endpoint_id = api.endpoint()
    api.contact(email="ada@example.com")

    [shown] = api.get("webhooks/deliveries").json["data"]

    assert shown == {
        "id": one("SELECT id FROM deliveries"),
        "event_id": one("SELECT id FROM events"),
        "endpoint_id": endpoint_id,
        "kind": "contact.created",
        "status": "pending",
        "attempts": 0,
        "next_attempt_at": shown["next_attempt_at"],
        "last_error": None,
        "last_error_code": None,
        "created_at": shown["created_at"],
        "delivered_at": None,
        "resent_from": None,
    }
    assert shown["next_attempt_at"].endswith("Z")


def test_the_next_attempt_after_one_under_way_is_when_its_lease_ends(api: Api) -> None:
    endpoint_id = api.endpoint()
    api.contact(external_id="c-1")
    [dispatch] = claim(lanes.FAST, {endpoint_id: 1})

    shown = api.get(f"webhooks/deliveries/{dispatch.claimed.id}").json["data"]

    assert shown["next_attempt_at"] == timestamp(one("SELECT leased_until FROM deliveries"))


def test_the_next_attempt_of_one_that_failed_is_when_its_pause_ends(api: Api) -> None:
    endpoint_id = api.endpoint()
    api.contact(external_id="c-1")
    [dispatch] = claim(lanes.FAST, {endpoint_id: 1})
    record([Outcome(dispatch, clock.now(), answered(503, b"", 5))])

    shown = api.get(f"webhooks/deliveries/{dispatch.claimed.id}").json["data"]

    assert shown["next_attempt_at"] == timestamp(one("SELECT next_attempt_at FROM deliveries"))
    assert one("SELECT next_attempt_at > now() + interval '30 seconds' FROM deliveries")


def test_an_item_has_the_body_that_is_sent_and_every_attempt(api: Api) -> None:
    api.endpoint()
    contact = api.contact(email="zoë@example.com")
    delivery_id = one("SELECT id FROM deliveries")
    database.rows(
        "INSERT INTO attempts (delivery_id, number, at, duration_ms, status, error, error_code, response_body) VALUES"
        " (%s, 2, '2026-11-21T10:01:00.25Z', 7, NULL, 'No answer.', 'timeout', ''),"
        " (%s, 1, '2026-11-21T10:00:00Z', 12, 500, 'Broken.', 'status', 'oops')",
        (delivery_id, delivery_id),
    )

    shown = api.get(f"webhooks/deliveries/{delivery_id}").json["data"]

    assert shown["body"].encode() == bytes(one("SELECT body FROM events"))
    assert json.loads(shown["body"])["data"]["contact"] == api.told_contact(contact["id"])
    assert shown["attempts_log"] == [
        {
            "number": 1,
            "at": "2026-11-21T10:00:00.000Z",
            "duration_ms": 12,
            "status": 500,
            "error": "Broken.",
            "error_code": "status",
            "response_body": "oops",
            "trigger": "automatic",
        },
        {
            "number": 2,
            "at": "2026-11-21T10:01:00.250Z",
            "duration_ms": 7,
            "status": None,
            "error": "No answer.",
            "error_code": "timeout",
            "response_body": "",
            "trigger": "automatic",
        },
    ]


def test_an_item_shows_what_the_list_shows(api: Api, deliveries: list[str]) -> None:
    listed = {row["id"]: row for row in api.get("webhooks/deliveries").json["data"]}

    for delivery_id in deliveries:
        shown = api.get(f"webhooks/deliveries/{delivery_id}").json["data"]
        assert {name: shown[name] for name in listed[delivery_id]} == listed[delivery_id]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("status=pending", [0]),
        ("status=failed", [1]),
        ("status=delivered", [2]),
        ("status=held", []),
        ("status=cancelled", []),
        ("kind=tag.added", [0]),
        ("kind=nothing.happened", []),
        ("kind=contact.created&status=failed", [1]),
        ("error_code=status", [1]),
        ("error_code=timeout", []),
        ("status_code=503", [1]),
        ("status_code=204", [2]),
        ("status_code=500", []),
        ("status_code=503&error_code=status&status=failed", [1]),
        ("status_code=503&status=delivered", []),
        ("endpoint_id=whe_01kaj5bd40e6rr3f5y2kq0w9xz", []),
        ("endpoint_id=x", []),
    ],
)
def test_a_filter_finds(api: Api, deliveries: list[str], query: str, found: list[int]) -> None:
    answer = api.get(f"webhooks/deliveries?{query}")

    assert answer.status_code == 200
    assert [row["id"] for row in answer.json["data"]] == [deliveries[number] for number in found]


def test_the_deliveries_of_one_endpoint_are_found(api: Api, deliveries: list[str]) -> None:
    endpoint_id = one("SELECT endpoint_id FROM deliveries WHERE status = 'delivered'")

    answer = api.get(f"webhooks/deliveries?endpoint_id={endpoint_id}")

    assert [row["id"] for row in answer.json["data"]] == [deliveries[2]]


def test_times_bound_what_is_found(api: Api, deliveries: list[str]) -> None:
    noon = (clock.now() - timedelta(hours=12)).strftime("%Y-%m-%dT%H:%M:%SZ")
    # Its identifier is of the same day.
    yesterday = ids.bound("dlv", clock.now() - timedelta(days=1))
    database.rows("UPDATE deliveries SET id = %s WHERE id = %s", (yesterday, deliveries[1]))

    since = api.get(f"webhooks/deliveries?since={noon}").json["data"]
    until = api.get(f"webhooks/deliveries?until={noon}").json["data"]

    assert {row["id"] for row in since} == {deliveries[0], deliveries[2]}
    assert [row["id"] for row in until] == [yesterday]


def test_since_is_included_and_until_is_not(api: Api, deliveries: list[str]) -> None:
    database.rows("UPDATE deliveries SET created_at = '2026-11-21T10:00:00.000Z'")

    at = "2026-11-21T11:00:00.000%2B01:00"

    assert len(api.get(f"webhooks/deliveries?since={at}").json["data"]) == 3
    assert api.get(f"webhooks/deliveries?until={at}").json["data"] == []


def test_deliveries_of_a_deleted_endpoint_can_still_be_read(api: Api) -> None:
    endpoint_id = api.endpoint()
    api.contact(email="ada@example.com")
    api.done(api.delete(f"webhooks/endpoints/{endpoint_id}"))

    assert [row["endpoint_id"] for row in api.get("webhooks/deliveries").json["data"]] == [endpoint_id]
    assert api.get(f"webhooks/deliveries/{all_of('SELECT id FROM deliveries')[0]}").status_code == 200


@pytest.mark.parametrize("query", ["error_code=broken", "status_code=99", "status_code=x"])
def test_a_code_that_there_is_not_is_refused(api: Api, query: str) -> None:
    answer = api.get(f"webhooks/deliveries?{query}")

    assert answer.status_code == 422
    assert answer.json["errors"][0]["pointer"] == f"/{query.partition('=')[0]}"


def test_what_came_of_attempts_is_shown_and_found_by_its_code(api: Api) -> None:
    endpoint_id = api.endpoint()
    api.contact(external_id="c-1")
    [dispatch] = claim(lanes.FAST, {endpoint_id: 1})
    record([Outcome(dispatch, clock.now(), answered(302, b"", 5))])

    [listed] = api.get("webhooks/deliveries?error_code=redirect&status_code=302").json["data"]

    assert (listed["last_error_code"], listed["last_error"]) == ("redirect", "Redirects are not followed (302).")
    [entry] = api.get(f"webhooks/deliveries/{listed['id']}").json["data"]["attempts_log"]
    assert (entry["error_code"], entry["error"]) == (listed["last_error_code"], listed["last_error"])

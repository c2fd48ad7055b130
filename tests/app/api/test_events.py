from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app import database
from app.lib import clock, ids
from tests.cast import Api, all_of, one, rung_on, working


def bodies_of(api: Api) -> dict[str, str]:
    """The stored body of every event, as text, by identifier."""
    found = database.rows("SELECT id, body FROM events WHERE workspace_id = %s", (api.workspace_id,))
    return {id: bytes(body).decode() for id, body in found}


def listed(api: Api, query: str = "") -> list[dict[str, Any]]:
    answer = api.get(f"events?{query}" if query else "events")
    assert answer.status_code == 200, answer.text
    return list(answer.json["data"])


def kinds(api: Api, query: str = "") -> list[str]:
    return [event["kind"] for event in listed(api, query)]


def newest(api: Api) -> str:
    return str(listed(api)[0]["id"])


def forget_bodies(api: Api) -> None:
    """What dropping the partition does."""
    database.rows("DELETE FROM events WHERE workspace_id = %s", (api.workspace_id,))


def stop(endpoint_id: str) -> None:
    database.rows("UPDATE endpoints SET state = 'stopped', stop_reason = 'x' WHERE id = %s", (endpoint_id,))


def test_an_event_is_listed_without_any_endpoint(api: Api) -> None:
    contact = api.contact(email="ada@example.com")

    [event] = listed(api)

    assert list(event) == ["id", "kind", "created_at", "contact_id", "body"]
    assert (event["kind"], event["contact_id"]) == ("contact.created", contact["id"])
    assert event["body"]["id"] == event["id"]
    assert event["body"]["created_at"] == event["created_at"]
    assert event["body"]["data"]["contact"]["email"] == "ada@example.com"


def test_the_body_has_the_very_bytes_of_the_deliveries(api: Api) -> None:
    api.endpoint()
    api.contact(email="zoë@example.com", custom_fields={"ratio": 1.50, "big": 2**53, "text": 'a "quoted" \u2028 line'})
    [(event_id, body)] = bodies_of(api).items()
    delivery = api.get("webhooks/deliveries").json["data"][0]["id"]

    assert f'"body":{body}' in api.get("events").text
    assert f'"body":{body}' in api.get(f"events/{event_id}").text
    assert api.get(f"webhooks/deliveries/{delivery}").json["data"]["body"] == body


def test_the_newest_event_comes_first_whatever_its_kind(api: Api) -> None:
    contact = api.contact(email="ada@example.com", tags=["vip"])
    api.sale(contact["id"])
    api.done(api.patch(f"contacts/{contact['id']}", {"first_name": "Ada"}))

    found = [event["id"] for event in listed(api)]

    assert found == all_of("SELECT id FROM events ORDER BY id DESC")
    assert kinds(api) == ["contact.updated", "sale.recorded", "tag.added", "contact.created"]


@pytest.mark.parametrize("query", ["", "kind=tag.added", "contact_id={contact}", "since={start}", "until={end}"])
def test_pages_hold_every_event_once(api: Api, query: str) -> None:
    contact = api.contact(email="ada@example.com", tags=[f"tag {number}" for number in range(6)])
    api.contact(email="eve@example.com", tags=["vip"])
    now = clock.now()
    places = {"start": now - timedelta(hours=5), "end": now + timedelta(hours=5)}
    times = {name: f"{at:%Y-%m-%dT%H:%M:%SZ}" for name, at in places.items()}
    asked = query.format(contact=contact["id"], **times)
    whole = [event["id"] for event in listed(api, asked)]

    page = api.get(f"events?{asked}&limit=2").json
    found = [event["id"] for event in page["data"]]
    while page["meta"]["hasMore"]:
        page = api.get(f"events?{asked}&limit=2&cursor={page['meta']['nextCursor']}").json
        found += [event["id"] for event in page["data"]]

    assert len(found) >= 7
    assert found == whole == sorted(found, reverse=True)


def test_a_filter_finds_a_kind_or_a_contact_or_both(api: Api) -> None:
    ada = api.contact(email="ada@example.com", tags=["vip"])["id"]
    eve = api.contact(email="eve@example.com", tags=["vip"])["id"]

    assert kinds(api, "kind=tag.added") == ["tag.added", "tag.added"]
    assert kinds(api, f"contact_id={ada}") == ["tag.added", "contact.created"]
    assert [event["contact_id"] for event in listed(api, f"kind=tag.added&contact_id={eve}")] == [eve]
    assert kinds(api, "kind=tag.removed") == kinds(api, "contact_id=nobody") == []


def test_since_is_inclusive_and_until_exclusive(api: Api) -> None:
    api.contact(email="ada@example.com", tags=["vip"])
    at = listed(api)[0]["created_at"]
    database.rows("UPDATE events SET created_at = %s", (at,))
    later = datetime.fromisoformat(at) + timedelta(milliseconds=1)

    assert len(listed(api, f"since={at}")) == len(listed(api, f"until={later:%Y-%m-%dT%H:%M:%S.%fZ}")) == 2
    assert listed(api, f"until={at}") == listed(api, f"since={later:%Y-%m-%dT%H:%M:%S.%fZ}") == []
    assert listed(api, "until=0001-01-01T00:00:00Z") == listed(api, "since=9999-12-31T00:00:00Z") == []


def test_an_event_shows_its_deliveries(api: Api) -> None:
    for number in range(2):
        api.endpoint(f"https://shop.example/{number}")
    api.endpoint("https://shop.example/other", events=["sale.recorded"])
    api.contact(email="ada@example.com", tags=["vip"])
    event = listed(api, "kind=contact.created")[0]

    shown = api.get(f"events/{event['id']}").json["data"]

    deliveries = api.get("webhooks/deliveries?kind=contact.created").json["data"]
    assert shown == event | {"deliveries": deliveries}
    assert len(deliveries) == 2


def test_an_event_that_nobody_wanted_has_no_deliveries(api: Api) -> None:
    api.contact(email="ada@example.com")

    assert api.get(f"events/{newest(api)}").json["data"]["deliveries"] == []


def test_an_event_of_an_erased_contact_shows_what_is_left(api: Api) -> None:
    contact = api.contact(email="ada@example.com")
    event = newest(api)
    api.done(api.delete(f"contacts/{contact['id']}"))

    shown = api.get(f"events/{event}").json["data"]

    assert shown["body"]["data"] == {"contact": {"id": contact["id"]}}
    assert "ada@example.com" not in api.get("events").text


def test_without_its_body_an_event_is_shown_as_long_as_its_deliveries_are(api: Api) -> None:
    api.endpoint()
    contact = api.contact(email="ada@example.com")
    before = api.get(f"events/{newest(api)}").json["data"]
    forget_bodies(api)

    shown = api.get(f"events/{before['id']}").json["data"]

    assert listed(api) == []
    assert shown == before | {"body": None, "created_at": shown["created_at"]}
    apart = datetime.fromisoformat(shown["created_at"]) - datetime.fromisoformat(before["created_at"])
    assert abs(apart) < timedelta(seconds=5)
    assert shown["contact_id"] == contact["id"]


# Sending one again


def test_an_event_goes_to_one_endpoint_as_a_new_delivery(api: Api) -> None:
    api.contact(email="ada@example.com")
    event = newest(api)
    endpoint = api.endpoint(events=["sale.recorded"])
    api.endpoint("https://shop.example/other")

    answer = api.post(f"events/{event}/resend", {"endpoint_id": endpoint})
    job = api.done(answer)

    assert (job["kind"], job["status"]) == ("deliveries.create", "succeeded")
    assert job["resource"]["id"] == answer.json["data"]["resource"]["id"]
    [delivery] = api.get(f"events/{event}").json["data"]["deliveries"]
    assert (delivery["id"], delivery["endpoint_id"]) == (job["resource"]["id"], endpoint)
    assert (delivery["status"], delivery["attempts"], delivery["resent_from"]) == ("pending", 0, None)
    assert api.get(f"webhooks/deliveries/{delivery['id']}").json["data"]["body"] == bodies_of(api)[event]
    assert endpoint in rung_on("deliveries")


def test_who_waits_gets_the_delivery(api: Api) -> None:
    api.contact(email="ada@example.com")
    event, endpoint = newest(api), api.endpoint()

    with working():
        answer = api.post(f"events/{event}/resend", {"endpoint_id": endpoint}, wait=20)

    assert answer.status_code == 201
    assert answer.json["data"]["event_id"] == event
    assert answer.headers["Location"].endswith(f"/webhooks/deliveries/{answer.json['data']['id']}")


def test_the_same_event_may_go_out_again_and_again(api: Api) -> None:
    endpoint = api.endpoint()
    api.contact(email="ada@example.com")
    event = newest(api)

    for _ in range(2):
        api.done(api.post(f"events/{event}/resend", {"endpoint_id": endpoint}))

    assert len(api.get(f"events/{event}").json["data"]["deliveries"]) == 3


def test_the_audit_log_says_who_sent_it(api: Api) -> None:
    api.contact(email="ada@example.com")
    event, endpoint = newest(api), api.endpoint()
    job = api.done(api.post(f"events/{event}/resend", {"endpoint_id": endpoint}))

    entry = api.get("webhooks/audit-log?action=deliveries.create").json["data"][0]

    assert entry["target"] == {"type": "delivery", "id": job["resource"]["id"]}
    assert entry["detail"] == {"endpoint_id": endpoint, "event_id": event}


@pytest.mark.parametrize("endpoint", ["x", "whe_01kaj5bd40e6rr3f5y2kq0w9xz"])
def test_an_unknown_endpoint_is_refused_at_once(api: Api, others: Api, endpoint: str) -> None:
    api.contact(email="ada@example.com")

    for unknown in (endpoint, others.endpoint()):
        answer = api.post(f"events/{newest(api)}/resend", {"endpoint_id": unknown})
        assert answer.status_code == 422
        assert answer.get_json(force=True)["detail"] == "endpoint_id: The workspace has no such endpoint."


def test_an_endpoint_that_is_still_queued_gets_the_event(api: Api) -> None:
    api.contact(email="ada@example.com")
    made = api.post("webhooks/endpoints", {"address": "https://shop.example/", "events": ["*"]})

    answer = api.post(f"events/{newest(api)}/resend", {"endpoint_id": made.json["data"]["resource"]["id"]})

    assert api.done(answer)["status"] == "succeeded"


def test_an_endpoint_that_is_deleted_meanwhile_fails_the_job(api: Api) -> None:
    api.contact(email="ada@example.com")
    endpoint = api.endpoint()
    api.delete(f"webhooks/endpoints/{endpoint}")

    job = api.done(api.post(f"events/{newest(api)}/resend", {"endpoint_id": endpoint}))

    assert job["problem"]["errors"] == [{"pointer": "/endpoint_id", "detail": "The workspace has no such endpoint."}]


def test_a_stopped_endpoint_fails_the_job_with_a_conflict(api: Api) -> None:
    api.contact(email="ada@example.com")
    endpoint = api.endpoint()
    stop(endpoint)

    with working():
        answer = api.post(f"events/{newest(api)}/resend", {"endpoint_id": endpoint}, wait=20)

    assert answer.status_code == 409
    assert "stopped" in answer.get_json(force=True)["detail"]
    assert one("SELECT count(*) FROM deliveries") == 0


def test_an_event_without_its_body_cannot_go_out(api: Api) -> None:
    endpoint = api.endpoint()
    api.contact(email="ada@example.com")
    event = newest(api)
    forget_bodies(api)

    answer = api.post(f"events/{event}/resend", {"endpoint_id": endpoint})

    assert answer.status_code == 409
    assert "body" in answer.get_json(force=True)["detail"]


def test_what_is_sent_of_an_erased_contact_is_what_is_left(api: Api) -> None:
    contact = api.contact(email="ada@example.com")
    event, endpoint = newest(api), api.endpoint()
    deleted = api.delete(f"contacts/{contact['id']}")

    api.post(f"events/{event}/resend", {"endpoint_id": endpoint})
    api.done(deleted)

    [delivery] = api.get(f"events/{event}").json["data"]["deliveries"]
    body = json.loads(api.get(f"webhooks/deliveries/{delivery['id']}").json["data"]["body"])
    assert body["data"] == {"contact": {"id": contact["id"]}}


def test_an_identifier_tells_its_time() -> None:
    before = datetime.now(UTC).replace(microsecond=0)

    assert before <= ids.time_of(ids.new("evt")) <= datetime.now(UTC) + timedelta(seconds=1)

"""Replays by API: what is asked for, refused at once, shown and listed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from app import database
from app.models.endpoints import Endpoint
from tests.cast import Api, all_of, one, replay, row_counts
from tests.sending import make, set_state

FAILED = {"filter": {"statuses": ["failed"]}}


@pytest.fixture
def endpoint(api: Api) -> Endpoint:
    return Endpoint.get_by_id(api.endpoint())


def begun(api: Api, **body: Any) -> dict[str, Any]:
    """A replay that has begun and that nobody has worked on."""
    job = api.done(api.post("webhooks/replays", FAILED | body))
    assert job["status"] == "succeeded", job
    return dict(api.get(f"webhooks/replays/{job['resource']['id']}").json["data"])


def test_a_replay_is_a_job_whose_resource_shows_the_progress(api: Api, endpoint: Endpoint) -> None:
    made = make(endpoint, 3)

    answer = api.post("webhooks/replays", {"filter": {"endpoint_ids": [endpoint.id]}, "per_second": None})

    resource = answer.json["data"]["resource"]
    assert resource["type"] == "replay"
    assert resource["url"] == f"https://bellhop.test{api.path('webhooks/replays/' + resource['id'])}"
    api.done(answer)
    shown = api.get(f"webhooks/replays/{resource['id']}").json["data"]
    assert shown == {
        "id": resource["id"],
        "state": "running",
        "filter": {
            "endpoint_ids": [endpoint.id],
            "except_endpoint_ids": None,
            "statuses": ["failed", "held"],
            "kinds": None,
            "error_codes": None,
            "status_codes": None,
            "since": None,
            "until": None,
        },
        "count": 3,
        "sent": 0,
        "skipped": 0,
        "per_second": None,
        "created_by": one("SELECT id FROM tokens WHERE workspace_id = %s", api.workspace_id),
        "created_at": shown["created_at"],
        "finished_at": None,
    }
    replay(resource["id"])
    shown = api.get(f"webhooks/replays/{resource['id']}").json["data"]
    assert (shown["state"], shown["sent"], shown["finished_at"] is not None) == ("done", 3, True)
    rows = api.get(f"webhooks/replays/{resource['id']}/rows").json["data"]
    assert rows == [
        {"delivery_id": id, "outcome": "sent", "reason": None, "sent_as": id, "at": rows[0]["at"]} for id in made[::-1]
    ]


def test_a_dry_run_counts_and_leaves_no_trace(api: Api, endpoint: Endpoint) -> None:
    made = make(endpoint, 2, last_error_code="timeout") + make(endpoint, 1)
    make(endpoint, 1, body=False)
    before = row_counts()

    answer = api.post("webhooks/replays", FAILED | {"dry_run": True, "canary": True, "per_second": 5})

    assert answer.status_code == 200
    preview = answer.json["data"]
    assert preview == {
        "count": 3,
        "left_out": {"body_gone": 1},
        "may_arrive_twice": 2,
        "sample": [api.get("webhooks/deliveries").json["data"][-1 - n] for n in range(3)],
    }
    assert [each["id"] for each in preview["sample"]] == made
    assert row_counts() == before


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/filter"),
        ({"filter": {}}, "/filter"),
        ({"filter": {}, "dry_run": True}, "/filter"),
        ({"filter": None}, "/filter"),
        ({"filter": {"statuses": []}}, "/filter/statuses"),
        ({"filter": {"endpoint_ids": []}}, "/filter/endpoint_ids"),
        ({"filter": {"except_endpoint_ids": []}}, "/filter/except_endpoint_ids"),
        ({"filter": {"kinds": []}}, "/filter/kinds"),
        ({"filter": {"error_codes": []}}, "/filter/error_codes"),
        ({"filter": {"endpoint_ids": None}}, "/filter/endpoint_ids"),
        ({"filter": {"statuses": ["cancelled"]}}, "/filter/statuses/0"),
        ({"filter": {"kinds": ["contact.exploded"]}}, "/filter/kinds/0"),
        ({"filter": {"error_codes": ["bad"]}}, "/filter/error_codes/0"),
        ({"filter": {"status_codes": ["503"]}}, "/filter/status_codes/0"),
        ({"filter": {"since": "yesterday"}}, "/filter/since"),
        ({"filter": {"since": "2026-01-02T00:00:00Z", "until": "2026-01-02T00:00:00Z"}}, "/filter/until"),
        ({"filter": {"everything": True}}, "/filter/everything"),
        (FAILED | {"per_second": 0}, "/per_second"),
        (FAILED | {"per_second": 1001}, "/per_second"),
        (FAILED | {"per_second": 0.5}, "/per_second"),
        (FAILED | {"canary": 1}, "/canary"),
        (FAILED | {"dry_run": "true"}, "/dry_run"),
        (FAILED | {"endpoint_id": "whe_1"}, "/endpoint_id"),
    ],
    ids=str,
)
def test_a_bad_replay_is_refused_at_its_place(api: Api, body: dict[str, Any], pointer: str) -> None:
    answer = api.post("webhooks/replays", body)

    assert answer.status_code == 422
    assert [error["pointer"] for error in answer.json["errors"]] == [pointer]
    assert one("SELECT count(*) FROM jobs") == 0


def test_times_are_kept_to_the_microsecond(api: Api, endpoint: Endpoint) -> None:
    since = "2026-01-01T00:00:00.000001Z"

    shown = begun(api, filter={"since": since})

    assert shown["filter"]["since"] == "2026-01-01T00:00:00.000Z"
    assert json.loads(one("SELECT filter::text FROM replays"))["since"] == "2026-01-01T00:00:00.000001+00:00"


def test_a_canary_is_followed_by_the_rest_when_it_is_continued(api: Api, endpoint: Endpoint) -> None:
    make(endpoint, 3)
    shown = begun(api, canary=True)
    assert shown["state"] == "canary"
    replay(shown["id"])
    assert api.get(f"webhooks/replays/{shown['id']}").json["data"]["sent"] == 1

    job = api.done(api.post(f"webhooks/replays/{shown['id']}/continue"))

    assert (job["kind"], job["resource"]["id"]) == ("replays.continue", shown["id"])
    replay(shown["id"])
    assert api.get(f"webhooks/replays/{shown['id']}").json["data"]["state"] == "done"


@pytest.mark.parametrize(("verb", "state"), [("pause", "paused"), ("abort", "aborted")])
def test_a_replay_is_paused_or_aborted(api: Api, endpoint: Endpoint, verb: str, state: str) -> None:
    make(endpoint, 3)
    path = f"webhooks/replays/{begun(api)['id']}"

    assert api.done(api.post(f"{path}/{verb}"))["status"] == "succeeded"

    assert api.get(path).json["data"]["state"] == state
    assert api.done(api.post(f"{path}/{verb}"))["status"] == "succeeded"


@pytest.mark.parametrize("verb", ["pause", "continue", "abort"])
def test_a_replay_that_is_done_is_refused_at_once_what_it_cannot_do(api: Api, endpoint: Endpoint, verb: str) -> None:
    shown = begun(api)
    assert shown["state"] == "done"
    jobs = one("SELECT count(*) FROM jobs")

    answer = api.post(f"webhooks/replays/{shown['id']}/{verb}")

    assert (answer.status_code, answer.json["detail"]) == (409, "This replay is done.")
    assert one("SELECT count(*) FROM jobs") == jobs


def test_a_replay_that_is_still_queued_can_be_aborted(api: Api, endpoint: Endpoint) -> None:
    make(endpoint, 3)
    created = api.post("webhooks/replays", FAILED)
    path = f"webhooks/replays/{created.json['data']['resource']['id']}"
    assert api.get(path).status_code == 404

    aborted = api.post(f"{path}/abort")

    assert aborted.status_code == 202
    assert api.done(aborted)["status"] == "succeeded"
    assert api.get(path).json["data"]["state"] == "aborted"


def test_replays_are_listed_newest_first(api: Api, others: Api, endpoint: Endpoint) -> None:
    made = [begun(api)["id"] for _ in range(3)]
    begun(others)

    first = api.get("webhooks/replays?limit=2").json
    rest = api.get(f"webhooks/replays?limit=2&cursor={first['meta']['nextCursor']}").json

    assert [each["id"] for each in first["data"] + rest["data"]] == made[::-1]
    assert rest["meta"] == {"nextCursor": None, "hasMore": False}


def test_rows_are_listed_latest_first_and_filtered_by_outcome(api: Api, endpoint: Endpoint) -> None:
    made = make(endpoint, 5)
    shown = begun(api)
    database.rows("DELETE FROM deliveries WHERE id = ANY(%s)", (made[1:3],))
    replay(shown["id"])
    path = f"webhooks/replays/{shown['id']}/rows"

    def ids_of(query: str) -> list[str]:
        found, cursor = [], ""
        while True:
            page = api.get(f"{path}?limit=1{query}{cursor}").json
            found += [row["delivery_id"] for row in page["data"]]
            if not page["meta"]["hasMore"]:
                return found
            cursor = f"&cursor={page['meta']['nextCursor']}"

    assert ids_of("") == made[::-1]
    assert ids_of("&outcome=skipped") == [made[2], made[1]]
    assert ids_of("&outcome=sent") == [made[4], made[3], made[0]]
    assert {row["reason"] for row in api.get(f"{path}?outcome=skipped").json["data"]} == {"expired"}


def test_the_audit_log_says_who_replayed_what(api: Api, endpoint: Endpoint) -> None:
    make(endpoint, 2)
    shown = begun(api, per_second=10)
    api.done(api.post(f"webhooks/replays/{shown['id']}/abort"))

    aborted, created = api.get("webhooks/audit-log").json["data"][:2]

    assert (aborted["action"], aborted["target"]) == ("replays.abort", {"type": "replay", "id": shown["id"]})
    assert created["action"] == "replays.create"
    assert created["detail"] == FAILED | {"per_second": 10, "count": 2}
    assert created["actor"]["type"] == "token"
    found = api.get("webhooks/audit-log?action=replays.create").json["data"]
    assert [each["id"] for each in found] == [created["id"]]


def test_a_stopped_endpoint_is_left_out(api: Api, endpoint: Endpoint) -> None:
    make(endpoint, 2, "held")
    set_state(endpoint, "stopped")

    answer = api.post("webhooks/replays", {"filter": {"statuses": ["held"]}, "dry_run": True})

    assert answer.json["data"] == {
        "count": 0,
        "left_out": {"endpoint_stopped": 2},
        "may_arrive_twice": 0,
        "sample": [],
    }
    assert all_of("SELECT status FROM deliveries") == ["held", "held"]

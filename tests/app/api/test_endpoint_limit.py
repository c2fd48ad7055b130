from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from app import database
from app.domain import writes
from app.domain.webhooks import endpoints
from app.lib import ids
from tests.cast import KEY, Api, in_threads, one, row_counts

BODY = {"address": "https://shop.example/hooks", "events": ["*"]}
FULL = "A workspace has at most 1,000 endpoints. Delete one first."


def fill(workspace_id: str, number: int) -> list[str]:
    """The identifiers of this many new endpoints, inserted in bulk."""
    made = [ids.new("whe") for _ in range(number)]
    database.rows(
        "INSERT INTO endpoints (id, workspace_id, address, events, secret)"
        " SELECT unnest(%s::text[]), %s, 'https://shop.example/', '{\"sale.recorded\"}', ''",
        (made, workspace_id),
    )
    return made


def create(api: Api, **options: Any) -> Any:
    return api.post("webhooks/endpoints", BODY, **options)


def test_a_workspace_has_at_most_1000_endpoints(api: Api) -> None:
    assert endpoints.QUOTA.most == 1_000
    fill(api.workspace_id, 999)
    thousandth = api.done(create(api))
    before = row_counts()

    refused = create(api)

    assert thousandth["status"] == "succeeded"
    assert (refused.status_code, refused.json["detail"]) == (409, FULL)
    assert refused.json["type"] == "https://bellhop.test/problems/conflict"
    assert row_counts() == before


def test_the_limit_is_that_of_each_workspace(api: Api, others: Api) -> None:
    fill(others.workspace_id, 1000)

    assert api.done(create(api))["status"] == "succeeded"


def test_a_create_that_others_have_overtaken_fails_in_its_job(api: Api) -> None:
    fill(api.workspace_id, 999)
    first, second = create(api), create(api)

    assert (first.status_code, second.status_code) == (202, 202)
    assert api.done(first)["status"] == "succeeded"
    problem = api.job(second)["problem"]
    assert (problem["status"], problem["detail"]) == (409, FULL)


def test_creates_that_race_do_not_exceed_the_limit(api: Api) -> None:
    fill(api.workspace_id, 997)
    answers = [create(api) for _ in range(8)]

    in_threads([partial(writes.work, api.workspace_id) for _ in range(4)])
    api.apply()

    ended = sorted(api.job(answer)["status"] for answer in answers)
    assert ended == ["failed"] * 5 + ["succeeded"] * 3
    assert one("SELECT count(*) FROM endpoints") == 1000


def test_a_deletion_that_waits_may_make_room(api: Api) -> None:
    made = fill(api.workspace_id, 1000)
    api.delete(f"webhooks/endpoints/{made[0]}")

    accepted = create(api)

    assert accepted.status_code == 202
    assert api.done(accepted)["status"] == "succeeded"
    assert create(api).status_code == 409


def test_a_replay_gets_its_job_although_the_workspace_is_full(api: Api) -> None:
    fill(api.workspace_id, 999)
    first = create(api, key=KEY)
    api.apply()

    replayed = create(api, key=KEY)

    assert replayed.status_code == 202
    assert replayed.headers["Idempotent-Replayed"] == "true"
    assert replayed.headers["Location"] == first.headers["Location"]
    assert create(api).status_code == 409


@pytest.mark.parametrize("change", [{"description": "Other"}, {"events": ["contact.created"]}], ids=str)
def test_endpoints_of_a_full_workspace_can_be_changed(api: Api, change: dict[str, Any]) -> None:
    made = fill(api.workspace_id, 1000)

    assert api.done(api.patch(f"webhooks/endpoints/{made[0]}", change))["status"] == "succeeded"

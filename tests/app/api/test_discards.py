"""Many deliveries discarded by API: counted first, then cancelled by one job that says how far it is."""

from __future__ import annotations

from typing import Any

import pytest

from app.domain.jobs import parts
from app.models.endpoints import Endpoint
from tests.cast import Api, apply, one
from tests.sending import make

PATH = "webhooks/discards"
BODY = {"filter": {"error_codes": ["dns"]}, "reason": "The shop has closed."}


@pytest.fixture
def endpoint(api: Api) -> Endpoint:
    return Endpoint.get_by_id(api.endpoint())


def number() -> int:
    return int(one("SELECT count(*) FROM deliveries WHERE status = 'cancelled'"))


def test_what_a_dry_run_counts_is_discarded_by_a_job_with_its_progress(api: Api, endpoint: Endpoint) -> None:
    make(endpoint, 3, last_error_code="dns")
    make(endpoint, 1, last_error_code="timeout")

    dry = api.post(PATH, BODY | {"dry_run": True})
    assert dry.json["data"]["count"] == 3
    assert number() == 0
    answer = api.post(PATH, BODY | {"as_of": dry.json["data"]["as_of"]})
    assert "progress" not in answer.json["data"]
    job = api.done(answer)

    assert job["resource"]["id"] == job["id"]
    assert job["progress"] == {"total": 3, "done": 3, "failed": 0}
    assert api.get(f"jobs/{job['id']}").json["data"] == job
    assert (number(), one("SELECT count(*) FROM audit_entries WHERE action = 'deliveries.discard'")) == (3, 1)


@pytest.mark.parametrize(
    ("wrong", "pointer"),
    [
        ({"reason": ""}, "/reason"),
        ({"reason": "\u00a0 \n"}, "/reason"),
        ({"filter": {}}, "/filter"),
        ({"filter": {"statuses": ["pending"]}}, "/filter/statuses/0"),
        ({"filter": {"statuses": ["delivered"]}}, "/filter/statuses/0"),
        ({"as_of": "yesterday"}, "/as_of"),
        ({"as_of": ""}, "/as_of"),
    ],
)
def test_what_it_cannot_be_about_is_refused(api: Api, endpoint: Endpoint, wrong: dict[str, Any], pointer: str) -> None:
    make(endpoint, 1, last_error_code="dns")

    answer = api.post(PATH, BODY | wrong)

    assert (answer.status_code, answer.json["errors"][0]["pointer"]) == (422, pointer)
    assert one("SELECT count(*) FROM jobs WHERE kind = 'deliveries.discard'") == 0


def test_only_a_few_are_under_way_in_a_workspace(api: Api, endpoint: Endpoint) -> None:
    make(endpoint, 1, last_error_code="dns")
    assert [api.post(PATH, BODY).status_code for _ in range(parts.MOST_UNFINISHED)] == [202] * 5

    assert api.post(PATH, BODY).status_code == 409
    apply(api.workspace_id)
    assert api.post(PATH, BODY).status_code == 202

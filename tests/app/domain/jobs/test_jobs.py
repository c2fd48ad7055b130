"""Jobs as they are accepted and waited for."""

from __future__ import annotations

from typing import Any

import pytest

from app.domain import writes
from app.domain.jobs import jobs
from app.domain.jobs.idempotency_keys import RequestKey, fingerprint
from app.domain.work.changes import Write
from app.models.jobs import Job
from tests.cast import Api, accept, apply, in_threads, one


@pytest.fixture
def workspace_id(api: Api) -> str:
    return api.workspace_id


def upsert(workspace_id: str, **fields: Any) -> str:
    return accept(workspace_id, "contacts.upsert", fields).id


def test_what_was_accepted_is_there_for_any_other_connection(workspace_id: str) -> None:
    upsert(workspace_id, external_id="one")

    assert in_threads([lambda: one("SELECT count(*) FROM jobs")]) == [1]


def test_a_write_with_a_key_that_is_taken_is_the_earlier_one(workspace_id: str) -> None:
    key = RequestKey("7f1b8f5e-3c0d-4a53-9d0e-2f6a1c9b8d47", fingerprint(b"POST", b"/x"))
    write = Write(workspace_id, "contacts.upsert", {"external_id": "one"}, "trace-1", actor_id="tok_1")

    (first, again) = (writes.accept(write, key), writes.accept(write, key))

    assert (first[1], again[1]) == (False, True)
    assert first[0].id == again[0].id


def test_waiting_ends_when_the_job_has_ended(workspace_id: str) -> None:
    job = Job.get_by_id(upsert(workspace_id, external_id="one"))
    apply(workspace_id)

    assert jobs.wait(job, seconds=20).status == "succeeded"


def test_waiting_gives_up_in_time(workspace_id: str) -> None:
    job = Job.get_by_id(upsert(workspace_id, external_id="one"))

    assert jobs.wait(job, seconds=0.05).status == "queued"

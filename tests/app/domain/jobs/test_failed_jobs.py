"""Many failed jobs are counted by cause, and replayed or discarded in parts, each once."""

from __future__ import annotations

from typing import Any

import pytest

from app.database import rows
from app.domain import writes
from app.domain.jobs import failed_jobs, parts
from app.domain.jobs.failed_jobs import Cause, Preview
from app.domain.verbs import VERBS
from app.errors import Conflict
from app.lib import ids, json
from app.mailbox import serving
from app.models.jobs import Job
from tests import failed_jobs as failing
from tests.app.web.counting import counted_statements
from tests.cast import Api, accept, all_of, apply, elsewhere, one


def fail(api: Api, number: int = 1, kind: str = "contacts.upsert", exception: str = "RuntimeError") -> list[str]:
    """Jobs that failed by a fault of ours, oldest first."""
    made = [ids.new("job") for _ in range(number)]
    problem = {"type": "https://bellhop.test/problems/internal-error", "detail": "x"}
    rows(
        "INSERT INTO jobs (id, workspace_id, kind, status, trace_id, due_at, payload, problem, broke, finished_at)"
        " SELECT id, %s, %s, 'failed', 't', NULL, json_build_object('email', id || '@shop.example'), %s, %s, now()"
        " FROM unnest(%s::text[]) AS id",
        (
            *(api.workspace_id, kind, json.dumps(problem).decode()),
            *(json.dumps({"type": exception, "message": "", "frames": []}).decode(), made),
        ),
    )
    return made


def seen(api: Api, /, **chosen: str) -> Preview:
    return failed_jobs.preview(api.workspace_id, chosen, list(VERBS))


def begin(api: Api, kind: str, until: str | None = None, /, **chosen: str) -> Job:
    payload: dict[str, Any] = {"filter": chosen, "until": until or seen(api).until, "reason": "Known."}
    return accept(api.workspace_id, kind, payload, api.workspace_id)


def settle(api: Api, kind: str, /, **chosen: str) -> Job:
    job = begin(api, kind, **chosen)
    apply(api.workspace_id)
    return Job.get_by_id(job.id)


def test_open_failures_are_counted_by_cause_exactly(api: Api, others: Api) -> None:
    fail(api, 3)
    fail(api, 2, "contacts.delete", "peewee.DataError")
    fail(api, 1, "contacts.import")
    refused = failing.refuse(api)
    fail(others, 5)

    found = seen(api)

    assert found.causes == [
        Cause("contacts.upsert", "internal-error", "RuntimeError", 3, 3),
        Cause("contacts.delete", "internal-error", "peewee.DataError", 2, 2),
        Cause("contacts.import", "internal-error", "RuntimeError", 1, 0),
        Cause("contacts.upsert", "conflict", "", 1, 0),
    ]
    assert (found.count, found.replayable, found.left_out) == (7, 5, {"import": 1, "not_kept": 1})
    assert found.until == refused
    assert (seen(api, exception="peewee.DataError").count, seen(api, exception="").count) == (2, 1)
    assert seen(api, kind="contacts.merge") == Preview([], {}, None)


def test_a_workspace_without_failures_has_nothing_to_settle(api: Api) -> None:
    assert seen(api) == Preview([], {}, None)
    assert parts.progress_of(Job(kind="contacts.upsert")) is None


@pytest.mark.parametrize("part", [1, 2, 7, 200])
def test_all_of_a_cause_are_replayed_in_order_once_and_nothing_else(
    api: Api, others: Api, monkeypatch: pytest.MonkeyPatch, part: int
) -> None:
    monkeypatch.setattr(parts, "PART", part)
    monkeypatch.setattr(parts, "LOOKED_AT", 3)
    first, other, second = fail(api, 4), fail(api, 3, "contacts.delete"), fail(api, 3)
    foreign = fail(others, 2)

    job = settle(api, "jobs.replay_many", kind="contacts.upsert")

    assert (job.status, parts.progress_of(job)) == ("succeeded", parts.Progress(7, 7))
    new = rows("SELECT replayed_from, status FROM jobs WHERE replayed_from IS NOT NULL ORDER BY position")
    assert new == [(old, "succeeded") for old in (*first, *second)]
    assert one("SELECT count(*) FROM contacts") == 7
    assert all_of(f"SELECT id FROM jobs WHERE {failed_jobs.OPEN} ORDER BY id") == sorted([*other, *foreign])
    kept = all_of("SELECT id FROM jobs WHERE status = 'failed' AND (payload IS NOT NULL OR broke IS NOT NULL)")
    assert sorted(kept) == sorted([*other, *foreign])
    assert settle(api, "jobs.replay_many", kind="contacts.upsert").progress["done"] == 0


def test_what_breaks_again_is_replayed_once(api: Api) -> None:
    fail(api, 5)

    with failing.broken():
        job = settle(api, "jobs.replay_many")

    assert job.progress["done"] == 5
    assert one("SELECT count(*) FROM jobs WHERE replayed_from IS NOT NULL") == 5
    assert seen(api).replayable == 5


def test_many_are_discarded_with_a_reason_and_one_entry_of_the_audit_log(api: Api) -> None:
    fail(api, 3)
    failing.refuse(api)

    job = settle(api, "jobs.discard_many")

    assert (job.status, job.progress["count"], job.progress["done"]) == ("succeeded", 4, 4)
    assert all_of("SELECT DISTINCT discard_reason FROM jobs WHERE discarded_at IS NOT NULL") == ["Known."]
    assert one("SELECT count(*) FROM jobs WHERE status = 'failed' AND payload IS NOT NULL") == 0
    [(action, detail)] = rows("SELECT action, detail FROM audit_entries WHERE action LIKE 'jobs.%%'")
    assert (action, detail["reason"], detail["count"]) == ("jobs.discard_many", "Known.", 4)
    assert seen(api).count == 0


def test_what_fails_after_the_preview_is_left(api: Api) -> None:
    fail(api, 2)
    until = seen(api).until
    later = fail(api, 1)

    begin(api, "jobs.discard_many", until)
    apply(api.workspace_id)

    assert all_of(f"SELECT id FROM jobs WHERE {failed_jobs.OPEN}") == later


def test_what_somebody_settled_meanwhile_is_not_touched(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "PART", 1)
    failed = fail(api, 4)
    job = begin(api, "jobs.replay_many")
    for path in (f"jobs/{failed[1]}/replay", f"jobs/{failed[2]}/replay"):
        assert api.post(path).status_code == 202
    apply(api.workspace_id)

    assert Job.get_by_id(job.id).progress["done"] == 2
    assert one("SELECT count(*) FROM jobs WHERE replayed_from IS NOT NULL") == 4
    assert one("SELECT count(*) FROM contacts") == 4


def test_it_does_not_wait_for_a_job_that_somebody_else_holds_and_comes_back_to_it(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "SLICE_SECONDS", 0)
    failed = fail(api, 4)
    job = begin(api, "jobs.replay_many")

    with elsewhere(lambda: rows("SELECT FROM jobs WHERE id = %s FOR NO KEY UPDATE", (failed[2],))):
        for _ in range(5):
            writes.work(api.workspace_id)
        assert Job.get_by_id(job.id).progress["done"] == 2
        assert Job.get_by_id(job.id).status == "running"
    apply(api.workspace_id)

    assert Job.get_by_id(job.id).progress["done"] == 4
    assert one("SELECT count(*) FROM contacts") == 4


def test_an_erasure_between_the_parts_takes_what_is_left(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "PART", 1)
    failed = fail(api, 3)
    contact_id = api.contact(email=f"{failed[2]}@shop.example")["id"]
    job = begin(api, "jobs.replay_many", failed[2])
    api.delete(f"contacts/{contact_id}")
    apply(api.workspace_id)

    # The erasure was accepted before the later parts, so it came first.
    assert Job.get_by_id(job.id).progress["done"] < 3
    assert failed[2] not in "".join(all_of("SELECT coalesce(payload::text, '') || coalesce(broke::text, '') FROM jobs"))
    assert one("SELECT count(*) FROM contacts WHERE email LIKE %s", f"{failed[2]}%") == 0


def test_other_writes_come_between_the_parts(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "PART", 1)
    fail(api, 5)
    job = begin(api, "jobs.discard_many")
    write = accept(api.workspace_id, "contacts.upsert", {"email": "ada@example.com"})

    monkeypatch.setattr(serving, "SLICE_SECONDS", 0)
    for _ in range(3):
        writes.work(api.workspace_id)

    assert Job.get_by_id(write.id).status == "succeeded"
    assert Job.get_by_id(job.id).status == "running"


def test_a_part_asks_few_questions_however_many_have_failed(api: Api) -> None:
    def statements(number: int) -> int:
        fail(api, number)
        begin(api, "jobs.discard_many")
        with counted_statements() as asked:
            apply(api.workspace_id)
        return len(asked)

    assert statements(150) == statements(3)


def test_only_one_is_under_way_in_a_workspace(api: Api, others: Api) -> None:
    fail(api, 1)
    begin(api, "jobs.discard_many")

    with pytest.raises(Conflict, match="already"):
        parts.refuse_more(api.workspace_id)
    parts.refuse_more(others.workspace_id)
    apply(api.workspace_id)
    parts.refuse_more(api.workspace_id)


def test_a_part_reads_only_open_failures_in_the_order_of_their_index(api: Api) -> None:
    fail(api, 20)
    values = failed_jobs._parameters(api.workspace_id, {}) | {
        "until": "job_~",
        "after": "",
        "most": 5,
        "looked_at": 5,
    }
    query = failed_jobs._NEXT.format(matches="true", able="")

    rows("SET enable_sort = off")  # of a few rows the planner prefers to sort
    try:
        plan = "\n".join(line for (line,) in rows(f"EXPLAIN {query}", values))
    finally:
        rows("RESET enable_sort")

    scans = [scan for scan in plan.split("->") if " on jobs_2" in scan]  # the default partition is empty
    assert scans, plan
    assert all("Index Cond: ((workspace_id" in scan and "status = 'failed'" not in scan for scan in scans), plan
    assert not any(word in plan for word in ("Seq Scan", "Sort  ")), plan

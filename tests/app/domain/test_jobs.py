"""Jobs as a worker applies them: in order, each alone, once, whatever happens to workers."""

from __future__ import annotations

from typing import Any

import peewee
import pytest
from structlog.testing import capture_logs

from app import database, mailbox
from app.domain import contacts, jobs
from app.domain.jobs import MAIL, MOST_CLAIMS, OnceKey, Write
from app.errors import Conflict
from app.models.jobs import Job
from tests.cast import Api, accept, all_of, apply, event_kinds, in_threads, one, out_of_room


@pytest.fixture
def workspace_id(api: Api) -> str:
    return api.workspace_id


def upsert(workspace_id: str, **fields: Any) -> str:
    return accept(workspace_id, "contacts.upsert", fields).id


def statuses() -> list[str]:
    return all_of("SELECT status FROM jobs ORDER BY position")


def test_jobs_take_effect_in_the_order_of_acceptance(workspace_id: str) -> None:
    for number in range(250):
        upsert(workspace_id, external_id="one", first_name=str(number))

    apply(workspace_id)

    assert all_of("SELECT first_name FROM contacts") == ["249"]
    told = all_of("SELECT convert_from(body, 'UTF8')::jsonb #>> '{data,contact,first_name}' FROM events ORDER BY id")
    assert told == [str(number) for number in range(250)]


def test_several_workers_keep_the_order(workspace_id: str) -> None:
    for number in range(300):
        upsert(workspace_id, external_id="one", first_name=str(number))

    results = in_threads([lambda: apply(workspace_id)] * 4)
    apply(workspace_id)

    assert results == [None] * 4
    told = all_of("SELECT convert_from(body, 'UTF8')::jsonb #>> '{data,contact,first_name}' FROM events ORDER BY id")
    assert told == [str(number) for number in range(300)]


def test_a_failing_job_takes_nothing_of_those_around_it(workspace_id: str) -> None:
    upsert(workspace_id, external_id="holder", email="ada@example.com")
    upsert(workspace_id, external_id="first", tags=["vip"])
    upsert(workspace_id, external_id="clash", email="ada@example.com")
    upsert(workspace_id, external_id="last")

    apply(workspace_id)

    assert statuses() == ["succeeded", "succeeded", "failed", "succeeded"]
    assert all_of("SELECT external_id FROM contacts ORDER BY id") == ["holder", "first", "last"]
    assert event_kinds(workspace_id) == ["contact.created", "contact.created", "tag.added", "contact.created"]


def test_what_a_failing_job_recorded_before_it_failed_did_not_happen(
    workspace_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def clash(change: Any) -> None:
        change.events.record("contact.created", {"contact": {}}, None)
        raise Conflict("Too late.")

    upsert(workspace_id, external_id="before")
    upsert(workspace_id, external_id="clash")
    upsert(workspace_id, external_id="after")
    real = jobs.KINDS["contacts.upsert"]
    verbs = iter([real.verb, clash, real.verb])
    monkeypatch.setattr(
        jobs,
        "KINDS",
        {"contacts.upsert": jobs.Kind(lambda change: next(verbs)(change), real.restriction, real.resource_type)},
    )

    apply(workspace_id)

    assert statuses() == ["succeeded", "failed", "succeeded"]
    assert event_kinds(workspace_id) == ["contact.created"] * 2


@pytest.mark.parametrize("error", [Conflict("No."), RuntimeError("broken")], ids=["refused", "broken"])
def test_events_that_were_written_early_survive_a_later_job_that_fails(
    workspace_id: str, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(_: Any) -> None:
        raise error

    upsert(workspace_id, external_id="before", tags=["vip"])
    accept(workspace_id, "contacts.delete", {}, "con_01kaj5bd40e6rr3f5y2kq0w9xz")
    monkeypatch.setattr(
        jobs,
        "KINDS",
        {**jobs.KINDS, "contacts.delete": jobs.Kind(fail, "contacts", "contact", after_events=True)},
    )

    apply(workspace_id)

    assert statuses() == ["succeeded", "failed"]
    assert event_kinds(workspace_id) == ["contact.created", "tag.added"]


def test_a_job_that_breaks_a_statement_fails_alone(workspace_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def break_statement(_: Any) -> None:
        database.rows("SELECT 1 / 0")

    upsert(workspace_id, external_id="before")
    accept(workspace_id, "contacts.add_tag", {"name": "vip"}, "con_01kaj5bd40e6rr3f5y2kq0w9xz")
    upsert(workspace_id, external_id="after")
    monkeypatch.setattr(
        jobs, "KINDS", {**jobs.KINDS, "contacts.add_tag": jobs.Kind(break_statement, "contacts", "contact")}
    )

    apply(workspace_id)

    assert statuses() == ["succeeded", "failed", "succeeded"]
    assert one("SELECT problem->>'status' FROM jobs WHERE status = 'failed'") == "500"


def test_a_job_that_breaks_is_logged_with_its_request(workspace_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contacts, "_record", None)
    job_id = upsert(workspace_id, external_id="one")

    with capture_logs() as lines:
        apply(workspace_id)

    [line] = [line for line in lines if line["event"] == "job.broke"]
    assert (line["request_id"], line["job"], line["kind"]) == ("trace-1", job_id, "contacts.upsert")
    assert line["exc_info"]


def test_a_database_that_goes_away_fails_no_job(workspace_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def lose(*_: Any) -> None:
        raise peewee.OperationalError("server closed the connection unexpectedly")

    upsert(workspace_id, external_id="one")
    with monkeypatch.context() as away:
        away.setattr(contacts, "_record", lose)
        with pytest.raises(peewee.OperationalError):
            jobs.work(workspace_id)
    assert statuses() == ["running"]

    database.rows("UPDATE jobs SET due_at = now()")
    apply(workspace_id)

    assert statuses() == ["succeeded"]
    assert event_kinds(workspace_id) == ["contact.created"]


@pytest.mark.parametrize("sqlstate", ["53100", "53200", "53300"], ids=["disk", "memory", "connections"])
def test_a_database_without_room_fails_no_job_however_often_it_is_tried(workspace_id: str, sqlstate: str) -> None:
    upsert(workspace_id, external_id="one")
    upsert(workspace_id, external_id="two")

    with out_of_room("contacts", sqlstate):
        for _ in range(2 * MOST_CLAIMS):
            with pytest.raises(peewee.OperationalError):
                jobs.work(workspace_id)
            assert one("SELECT count(*) FROM jobs WHERE due_at > now()") == 2  # not at once again
            database.rows("UPDATE jobs SET due_at = now()")
    assert statuses() == ["running", "running"]
    apply(workspace_id)

    assert statuses() == ["succeeded", "succeeded"]
    assert event_kinds(workspace_id) == ["contact.created"] * 2


def test_what_was_applied_before_the_room_ran_out_stays_so(workspace_id: str) -> None:
    upsert(workspace_id, external_id="one")
    accept(workspace_id, "endpoints.create", {"address": "https://a/", "events": ["*"], "sealed_secret": "x"}, "whe_1")
    die_over(workspace_id)  # so that they are applied one at a time

    with out_of_room("endpoints"), pytest.raises(peewee.OperationalError):
        jobs.work(workspace_id)

    assert statuses() == ["succeeded", "running"]
    assert all_of("SELECT claim FROM jobs ORDER BY position") == [2, 1]


@pytest.mark.parametrize("sqlstate", ["40P01", "40001", "57014"], ids=["deadlock", "serialization", "cancelled"])
def test_a_write_that_the_database_gave_up_is_tried_again(workspace_id: str, sqlstate: str) -> None:
    upsert(workspace_id, external_id="one")
    upsert(workspace_id, external_id="two")
    with out_of_room("contacts", sqlstate), pytest.raises(peewee.OperationalError):
        jobs.work(workspace_id)
    assert statuses() == ["running", "running"]

    database.rows("UPDATE jobs SET due_at = now()")
    apply(workspace_id)

    assert statuses() == ["succeeded", "succeeded"]
    assert event_kinds(workspace_id) == ["contact.created"] * 2


# Workers that die


def die_over(workspace_id: str, times: int = 1) -> None:
    """Lets so many workers take the waiting jobs and die."""
    for _ in range(times):
        assert mailbox.claim(MAIL, {workspace_id: 100}, 5)
        database.rows("UPDATE jobs SET due_at = now() - interval '1 second' WHERE due_at IS NOT NULL")


def test_jobs_of_a_worker_that_died_are_done_by_another(workspace_id: str) -> None:
    upsert(workspace_id, external_id="one")
    upsert(workspace_id, external_id="two")
    die_over(workspace_id)

    apply(workspace_id)

    assert statuses() == ["succeeded", "succeeded"]
    assert event_kinds(workspace_id) == ["contact.created"] * 2


def test_after_a_death_jobs_are_done_one_at_a_time(workspace_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    upsert(workspace_id, external_id="one")
    upsert(workspace_id, external_id="two")
    die_over(workspace_id)
    sizes: list[int] = []
    real = jobs._apply
    monkeypatch.setattr(jobs, "_apply", lambda batch: (sizes.append(len(batch)), real(batch)))

    apply(workspace_id)

    assert sizes == [1, 1]


def test_a_job_that_has_ended_too_many_workers_fails_and_frees_those_behind_it(workspace_id: str) -> None:
    poison = upsert(workspace_id, external_id="poison")
    die_over(workspace_id, MOST_CLAIMS)
    upsert(workspace_id, external_id="behind")

    apply(workspace_id)

    assert statuses() == ["failed", "succeeded"]
    failed = Job.get_by_id(poison)
    assert failed.problem["status"] == 500
    assert failed.problem["traceId"] == "trace-1"
    assert failed.payload == {"external_id": "poison"}
    assert all_of("SELECT external_id FROM contacts") == ["behind"]


def test_a_job_whose_last_worker_did_not_die_is_done(workspace_id: str) -> None:
    upsert(workspace_id, external_id="lucky")
    die_over(workspace_id, MOST_CLAIMS - 1)

    apply(workspace_id)

    assert statuses() == ["succeeded"]


def test_a_late_worker_changes_nothing(workspace_id: str) -> None:
    upsert(workspace_id, external_id="one")
    late = mailbox.claim(MAIL, {workspace_id: 100}, 5)
    database.rows("UPDATE jobs SET due_at = now() - interval '1 second'")
    apply(workspace_id)
    before = database.rows("SELECT * FROM jobs")

    with capture_logs() as lines:
        jobs._apply(late)

    assert database.rows("SELECT * FROM jobs") == before
    assert event_kinds(workspace_id) == ["contact.created"]
    assert "jobs.not_held" in [line["event"] for line in lines]


def test_work_without_work_does_nothing(workspace_id: str) -> None:
    jobs.work(workspace_id)
    jobs.work("ws_unknown")

    assert statuses() == []


# Accepting


def test_what_was_accepted_is_there_for_any_other_connection(workspace_id: str) -> None:
    upsert(workspace_id, external_id="one")

    assert in_threads([lambda: one("SELECT count(*) FROM jobs")]) == [1]


def test_a_write_with_a_key_that_is_taken_is_the_earlier_one(workspace_id: str) -> None:
    once = OnceKey("7f1b8f5e-3c0d-4a53-9d0e-2f6a1c9b8d47", jobs.fingerprint(b"POST", b"/x"))
    write = Write(workspace_id, "contacts.upsert", {"external_id": "one"}, "trace-1", token_id="tok_1")

    (first, again) = (jobs.accept(write, once), jobs.accept(write, once))

    assert (first[1], again[1]) == (False, True)
    assert first[0].id == again[0].id


@pytest.mark.parametrize(
    ("one_request", "another"),
    [((b"a", b"bc"), (b"ab", b"c")), ((b"a", b""), (b"", b"a")), ((b"a",), (b"a", b""))],
    ids=["border", "side", "count"],
)
def test_fingerprints_tell_where_a_part_ends(one_request: tuple[bytes, ...], another: tuple[bytes, ...]) -> None:
    assert jobs.fingerprint(*one_request) != jobs.fingerprint(*another)


def test_waiting_ends_when_the_job_has_ended(workspace_id: str) -> None:
    job = Job.get_by_id(upsert(workspace_id, external_id="one"))
    apply(workspace_id)

    assert jobs.wait(job, seconds=20).status == "succeeded"


def test_waiting_gives_up_in_time(workspace_id: str) -> None:
    job = Job.get_by_id(upsert(workspace_id, external_id="one"))

    assert jobs.wait(job, seconds=0.05).status == "queued"

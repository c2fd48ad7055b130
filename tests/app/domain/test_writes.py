"""Writes as workers apply them: in order, once, and failing only for their own reason."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import peewee
import pytest
from structlog.testing import capture_logs

from app import database, mailbox, metrics
from app.domain import writes
from app.domain.contacts import contacts
from app.domain.jobs import jobs
from app.domain.jobs.jobs import MAIL
from app.domain.verbs import VERBS
from app.domain.work.changes import Change, Effect
from app.domain.writes import MOST_DEATHS
from app.errors import Conflict
from app.models.jobs import Job
from tests.cast import Api, accept, all_of, apply, event_kinds, in_another_process, in_threads, one, out_of_room

UPSERT = VERBS["contacts.upsert"]


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
    real = contacts.upsert
    verbs = iter([real, clash, real])
    monkeypatch.setattr(writes, "VERBS", {"contacts.upsert": replace(UPSERT, call=lambda change: next(verbs)(change))})

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
        writes, "VERBS", {**writes.VERBS, "contacts.delete": replace(writes.VERBS["contacts.delete"], call=fail)}
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
    verb = replace(writes.VERBS["contacts.add_tag"], call=break_statement)
    monkeypatch.setattr(writes, "VERBS", {**writes.VERBS, "contacts.add_tag": verb})

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
            writes.work(workspace_id)
    assert statuses() == ["running"]

    apply(workspace_id)

    assert statuses() == ["succeeded"]
    assert event_kinds(workspace_id) == ["contact.created"]


@pytest.mark.parametrize("sqlstate", ["53100", "53200", "53300"], ids=["disk", "memory", "connections"])
def test_a_database_without_room_fails_no_job_however_often_it_is_tried(workspace_id: str, sqlstate: str) -> None:
    upsert(workspace_id, external_id="one")
    upsert(workspace_id, external_id="two")

    with out_of_room("contacts", sqlstate):
        for _ in range(2 * MOST_DEATHS):
            with pytest.raises(peewee.OperationalError):
                writes.work(workspace_id)
    assert statuses() == ["running", "running"]
    apply(workspace_id)

    assert statuses() == ["succeeded", "succeeded"]
    assert event_kinds(workspace_id) == ["contact.created"] * 2


def test_what_was_applied_before_the_room_ran_out_stays_so(workspace_id: str) -> None:
    upsert(workspace_id, external_id="one")
    accept(workspace_id, "endpoints.create", {"address": "https://a/", "events": ["*"], "sealed_secret": "x"}, "whe_1")
    die_over(workspace_id)  # so that they are applied one at a time

    with out_of_room("endpoints"), pytest.raises(peewee.OperationalError):
        writes.work(workspace_id)

    assert statuses() == ["succeeded", "running"]
    assert all_of("SELECT deaths FROM jobs ORDER BY position") == [0, 0]


@pytest.mark.parametrize("sqlstate", ["40P01", "40001", "57014"], ids=["deadlock", "serialization", "cancelled"])
def test_a_write_that_the_database_gave_up_is_tried_again(workspace_id: str, sqlstate: str) -> None:
    upsert(workspace_id, external_id="one")
    upsert(workspace_id, external_id="two")
    with out_of_room("contacts", sqlstate), pytest.raises(peewee.OperationalError):
        writes.work(workspace_id)
    assert statuses() == ["running", "running"]

    apply(workspace_id)

    assert statuses() == ["succeeded", "succeeded"]
    assert event_kinds(workspace_id) == ["contact.created"] * 2


# Workers that die


def end_leases() -> None:
    database.rows("UPDATE jobs SET leased_until = now() - interval '1 second' WHERE leased_until IS NOT NULL")


def die_over(workspace_id: str) -> None:
    """Lets a worker claim the waiting jobs and die."""
    assert mailbox.claim(MAIL, {workspace_id: 100}, 5)
    end_leases()


def killing(external_id: str) -> Callable[[Change], Effect]:
    """The upsert of contacts, by which a process dies of one contact."""

    def upsert(change: Change) -> Effect:
        if change.payload["external_id"] == external_id:
            os._exit(9)
        return contacts.upsert(change)

    return upsert


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
    real = writes._apply
    monkeypatch.setattr(writes, "_apply", lambda batch: (sizes.append(len(batch)), real(batch)))

    apply(workspace_id)

    assert sizes == [1, 1]


def test_only_the_job_that_kills_its_workers_fails(workspace_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    accepted = [upsert(workspace_id, external_id=f"customer-{number}") for number in range(50)]
    monkeypatch.setattr(writes, "VERBS", {"contacts.upsert": replace(UPSERT, call=killing("customer-20"), needs=None)})

    exits = []
    while one("SELECT count(*) FROM jobs WHERE due_at IS NOT NULL"):
        exits.append(in_another_process(lambda: writes.work(workspace_id)))
        end_leases()

    assert [code for code in exits if code] == [9] * (1 + MOST_DEATHS)  # a slice may end before any death
    assert statuses() == ["succeeded"] * 20 + ["failed"] + ["succeeded"] * 29
    killer = Job.get_by_id(accepted[20])
    assert (killer.problem["status"], killer.problem["traceId"]) == (500, "trace-1")
    assert killer.payload == {"external_id": "customer-20"}
    assert one("SELECT count(*) FROM contacts") == 49


def test_what_a_worker_survives_counts_against_no_job(workspace_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def lose(_: Any) -> None:
        raise peewee.OperationalError("server closed the connection unexpectedly")

    upsert(workspace_id, external_id="one")
    for _ in range(2 * MOST_DEATHS):
        die_over(workspace_id)  # so that it is worked on alone
        with monkeypatch.context() as away:
            away.setattr(writes, "VERBS", {"contacts.upsert": replace(UPSERT, call=lose, needs=None)})
            with pytest.raises(peewee.OperationalError):
                writes.work(workspace_id)
    apply(workspace_id)

    assert statuses() == ["succeeded"]


def test_leases_that_end_count_against_no_job(workspace_id: str) -> None:
    upsert(workspace_id, external_id="one")
    for _ in range(10 * MOST_DEATHS):
        die_over(workspace_id)

    apply(workspace_id)

    assert statuses() == ["succeeded"]


def test_each_job_that_is_done_alone_renews_the_leases_of_its_batch(
    workspace_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    upsert(workspace_id, external_id="first")
    upsert(workspace_id, external_id="second")
    die_over(workspace_id)
    ends: list[Any] = []

    def look(change: Change) -> Effect:
        ends.append(one("SELECT max(leased_until) FROM jobs"))
        return contacts.upsert(change)

    monkeypatch.setattr(writes, "VERBS", {"contacts.upsert": replace(UPSERT, call=look, needs=None)})
    apply(workspace_id)

    assert ends[0] < ends[1]
    assert statuses() == ["succeeded", "succeeded"]


# Kinds that this version does not know


def test_a_job_of_an_unknown_kind_waits_and_holds_up_nothing(workspace_id: str) -> None:
    upsert(workspace_id, external_id="before")
    unknown = upsert(workspace_id, external_id="unknown")
    database.rows("UPDATE jobs SET kind = 'contacts.teleport' WHERE id = %s", (unknown,))
    upsert(workspace_id, external_id="behind")

    apply(workspace_id)

    assert statuses() == ["succeeded", "queued", "succeeded"]
    assert jobs.unknown() == {"contacts.teleport": 1}


def test_a_job_is_applied_by_the_first_worker_that_knows_its_kind(
    workspace_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    unknown = upsert(workspace_id, external_id="unknown")
    database.rows("UPDATE jobs SET kind = 'contacts.teleport' WHERE id = %s", (unknown,))
    apply(workspace_id)
    assert writes.take_up_known() == 0
    assert metrics.JOBS_UNKNOWN._value.get() == 1

    monkeypatch.setattr(writes, "VERBS", {"contacts.teleport": replace(UPSERT, call=contacts.upsert, needs=None)})
    assert writes.take_up_known() == 1
    apply(workspace_id)

    assert statuses() == ["succeeded"]
    assert (jobs.unknown(), metrics.JOBS_UNKNOWN._value.get()) == ({}, 0)


# Workers that come late


def test_a_late_worker_changes_nothing(workspace_id: str) -> None:
    upsert(workspace_id, external_id="one")
    late = mailbox.claim(MAIL, {workspace_id: 100}, 5)
    end_leases()
    apply(workspace_id)
    before = database.rows("SELECT * FROM jobs")

    with capture_logs() as lines:
        writes._apply(late)

    assert database.rows("SELECT * FROM jobs") == before
    assert event_kinds(workspace_id) == ["contact.created"]
    assert "jobs.not_held" in [line["event"] for line in lines]


def test_work_without_work_does_nothing(workspace_id: str) -> None:
    writes.work(workspace_id)
    writes.work("ws_unknown")

    assert statuses() == []

"""Jobs on pages: the list, one job, and what is done about one that failed."""

from __future__ import annotations

import json

import pytest

from app import database
from app.lib import ids
from app.lib.json import timestamp
from tests import failed_jobs
from tests.cast import Api, all_of, one
from tests.logs import MOST_STATEMENTS, NASTY
from tests.pages import Person


@pytest.fixture
def failed(api: Api) -> str:
    """A job that failed by a fault of ours."""
    return failed_jobs.fail(api)


@pytest.fixture
def refused(api: Api) -> str:
    """A job that failed for a reason of its own."""
    return failed_jobs.refuse(api)


def test_jobs_are_listed_filtered_and_a_file(api: Api, owner: Person, failed: str, refused: str) -> None:
    done = str(api.done(api.post("contacts", {"email": "bob@example.com"}))["id"])

    assert all(job_id in owner.page("dashboard/jobs") for job_id in (failed, refused, done))
    for query, found in (
        ("status=open", {failed, refused}),
        ("status=open&kind=contacts.upsert", {failed, refused}),
        ("status=open&kind=contacts.delete", set()),
        ("status=failed", {failed, refused}),
        ("status=failed&kind=contacts.upsert", {failed, refused}),
        ("status=queued", set()),
    ):
        shown = owner.page(f"dashboard/jobs?{query}")
        assert {job_id for job_id in (failed, refused, done) if job_id in shown} == found, query
        rows = json.loads(owner.get(f"dashboard/jobs?{query}&format=json").text)
        assert {row["id"] for row in rows} == found
    assert "There is no such choice" in owner.page("dashboard/jobs?status=x")


def test_a_failed_job_shows_what_it_was_asked_until_its_contact_is_deleted(
    api: Api, owner: Person, failed: str, refused: str
) -> None:
    added = '{"sealed_secret": "gAAAA", "note": "<b>x"}'
    database.rows("UPDATE jobs SET payload = (payload::jsonb || %s)::json WHERE id = %s", (added, failed))
    shown = owner.get(f"dashboard/jobs/{failed}").text

    assert "What it was asked to do" in shown
    assert "&#34;email&#34;: &#34;ada@example.com&#34;" in shown
    assert "gAAAA" not in shown
    assert "<b>x" not in shown
    assert "What it was asked to do" not in owner.page(f"dashboard/jobs/{refused}")

    contact_id = api.contact(email="ada@example.com")["id"]
    api.done(api.delete(f"contacts/{contact_id}"))

    assert "ada@example.com" not in owner.page(f"dashboard/jobs/{failed}")


def test_staff_see_what_broke_a_job_until_its_contact_is_deleted(
    api: Api, owner: Person, support: Person, failed: str, refused: str
) -> None:
    shown = support.page(f"dashboard/jobs/{failed}")

    assert "What broke" in shown
    assert "RuntimeError" in shown
    assert "hunter2" in shown
    assert "app/domain/contacts/contacts.py:" in shown
    assert "What broke" not in owner.page(f"dashboard/jobs/{failed}")
    assert "What broke" not in support.page(f"dashboard/jobs/{refused}")

    api.done(api.delete(f"contacts/{api.contact(email='ada@example.com')['id']}"))

    assert "What broke" not in support.page(f"dashboard/jobs/{failed}")
    assert one("SELECT broke FROM jobs WHERE id = %s", failed) is None


def test_what_broke_is_text(support: Person, failed: str) -> None:
    said = json.dumps({"type": "<b>x", "message": "<script>alert(1)</script>", "frames": ["<i>y"]})
    database.rows("UPDATE jobs SET broke = %s WHERE id = %s", (said, failed))

    shown = support.get(f"dashboard/jobs/{failed}").text

    assert "&lt;script&gt;alert(1)" in shown
    assert not any(tag in shown for tag in ("<b>x", "<script>alert", "<i>y"))


def test_jobs_of_a_time_are_listed(owner: Person, failed: str, refused: str) -> None:
    first, second = sorted((failed, refused))
    between = timestamp(ids.time_of(second))

    for query, found in (
        (f"since={between}", {second}),
        (f"until={between}", {first}),
        (f"status=open&since={between}", {second}),
        (f"since={between}&until={between}", set()),
        ("since=2026-01-01T00:00", {first, second}),
        (f"until={between}&after={second}", {first}),
        (f"after={first}", set()),
    ):
        shown = owner.page(f"dashboard/jobs?{query}")
        assert {job_id for job_id in (first, second) if f'jobs/{job_id}"' in shown} == found, query
        if "after" not in query:
            rows = json.loads(owner.get(f"dashboard/jobs?{query}&format=json").text)
            assert {row["id"] for row in rows} & {first, second} == found
    assert "Give a time such as" in owner.page("dashboard/jobs?since=yesterday")


def test_a_workspace_without_jobs_says_what_makes_one(owner: Person) -> None:
    assert "Nothing has been written yet." in owner.page("dashboard/jobs")
    assert "No failed job is open." in owner.page("dashboard/jobs?status=open")


def test_a_job_that_failed_by_our_fault_is_replayed_once(owner: Person, failed: str) -> None:
    shown = owner.page(f"dashboard/jobs/{failed}")
    assert "Replay the job" in shown
    assert "hunter2" not in shown

    answer = owner.post(f"dashboard/jobs/{failed}/replay")

    assert answer.status_code == 303
    new = answer.location.rpartition("/")[2]
    shown = owner.page(f"dashboard/jobs/{new}")
    assert "It succeeded this time." in shown
    assert failed in shown
    assert all_of("SELECT email FROM contacts") == ["ada@example.com"]
    old = owner.page(f"dashboard/jobs/{failed}")
    assert f'It was replayed as <a href="{owner.path("dashboard/jobs/" + new)}">' in old
    assert "Replay the job" not in old
    assert failed not in owner.page("dashboard/jobs?status=open")
    owner.post(f"dashboard/jobs/{failed}/replay")
    assert "This job was replayed as" in owner.page(f"dashboard/jobs/{failed}")
    assert one("SELECT count(*) FROM jobs WHERE replayed_from = %s", failed) == 1


def test_a_replay_that_fails_again_shows_the_new_job(owner: Person, failed: str) -> None:
    with failed_jobs.broken():
        answer = owner.post(f"dashboard/jobs/{failed}/replay")

    shown = owner.page(answer.location)
    assert "Internal error" in shown
    assert "Replay the job" in shown


def test_a_job_that_was_refused_says_why_it_cannot_be_replayed_and_is_discarded_with_a_reason(
    owner: Person, refused: str
) -> None:
    shown = owner.page(f"dashboard/jobs/{refused}")
    assert "is not kept" in shown
    assert "Replay the job" not in shown

    assert owner.post(f"dashboard/jobs/{refused}/discard", {"reason": NASTY}).status_code == 303

    assert NASTY not in owner.get(f"dashboard/jobs/{refused}").text
    assert NASTY in owner.page(f"dashboard/jobs/{refused}")
    assert refused not in owner.page("dashboard/jobs?status=open")


@pytest.mark.parametrize("reason", ["", "  ", "x" * 501])
def test_a_discard_without_a_reason_is_refused_at_the_field(owner: Person, refused: str, reason: str) -> None:
    answer = owner.post(f"dashboard/jobs/{refused}/discard", {"reason": reason})

    assert answer.status_code == 422
    assert 'aria-invalid="true"' in answer.text
    assert one("SELECT discarded_at FROM jobs WHERE id = %s", refused) is None


def test_an_agent_sees_a_job_and_changes_nothing(agent: Person, failed: str) -> None:
    shown = agent.page(f"dashboard/jobs/{failed}")

    assert "Replay the job" not in shown
    assert "Discard the job" not in shown
    assert agent.post(f"dashboard/jobs/{failed}/replay").status_code == 403
    assert agent.post(f"dashboard/jobs/{failed}/discard", {"reason": "x"}).status_code == 403


def test_staff_replay_a_job_on_a_visit(support: Person, failed: str) -> None:
    assert support.post(f"dashboard/jobs/{failed}/replay").status_code == 403

    support.visit()
    support.post(f"dashboard/jobs/{failed}/replay")

    assert one("SELECT ticket FROM audit_entries WHERE action = 'jobs.replay'") == "T-1"


def test_another_workspaces_job_is_not_there(stranger: Person, failed: str) -> None:
    assert stranger.get(f"dashboard/jobs/{failed}").status_code == 404
    assert stranger.post(f"dashboard/jobs/{failed}/replay").status_code == 404


def test_the_pages_take_few_statements(owner: Person, failed: str, statements: list[str]) -> None:
    for path in ("dashboard/jobs?status=open", "dashboard/jobs?status=failed", f"dashboard/jobs/{failed}"):
        before = len(statements)
        owner.page(path)
        assert len(statements) - before <= MOST_STATEMENTS, statements[before:]

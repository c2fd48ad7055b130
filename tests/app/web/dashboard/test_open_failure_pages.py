"""Many failed jobs on pages: counted by cause, replayed and discarded with one click."""

from __future__ import annotations

import uuid

import pytest

from app.domain.jobs import parts
from tests import failed_jobs
from tests.app.domain.jobs.test_failed_jobs import fail
from tests.app.web.counting import MOST_STATEMENTS, counted_statements
from tests.cast import Api, apply, one
from tests.pages import Person

CHOSEN = {"kind": "contacts.upsert", "problem": "internal-error"}


def test_causes_are_counted_and_lead_to_what_can_be_done(owner: Person, api: Api) -> None:
    assert "No failed job is open." in owner.page("dashboard/open-failures")
    fail(api, 12)
    fail(api, 2, "contacts.delete", "<b>x")
    failed_jobs.refuse(api)

    shown = owner.get("dashboard/open-failures").text

    for part in ("Replay 14 jobs", "Discard 15 jobs", "Internal error", "Conflict", "&lt;b&gt;x", "not kept"):
        assert part in shown
    assert "<b>x" not in shown
    narrowed = owner.page("dashboard/open-failures?kind=contacts.upsert&problem=internal-error")
    assert "Replay 12 jobs" in narrowed
    assert "Discard 12 jobs" in narrowed
    assert "Discard 1 job" in owner.page("dashboard/open-failures?exception=none")


def test_a_cause_is_replayed_once_however_often_it_is_clicked(owner: Person, api: Api) -> None:
    fail(api, 3)
    other = fail(api, 2, "contacts.delete")
    fields = {**CHOSEN, "until": other[-1], "once": str(uuid.uuid4())}

    answers = [owner.post("dashboard/open-failures/replay", fields) for _ in range(2)]
    apply(api.workspace_id)

    assert len({answer.location for answer in answers}) == 1
    assert "Replayed 3 of 3 failed jobs." in owner.page(answers[0].location)
    assert one("SELECT count(*) FROM jobs WHERE kind = 'jobs.replay_many'") == 1
    assert one("SELECT count(*) FROM contacts") == 3
    assert "Discard 2 jobs" in owner.page("dashboard/open-failures")


def test_what_was_shown_is_discarded_with_a_reason(owner: Person, api: Api) -> None:
    until = fail(api, 3)[-1]
    later = fail(api, 1)

    refused = owner.post("dashboard/open-failures/discard", {**CHOSEN, "until": until, "reason": " "})
    assert refused.status_code == 422
    assert one("SELECT count(*) FROM jobs WHERE discarded_at IS NOT NULL") == 0

    done = owner.post("dashboard/open-failures/discard", {**CHOSEN, "until": until, "reason": "Done by hand."})

    assert "Discarded 3 of 3 failed jobs." in owner.page(done.location)
    assert one("SELECT min(id) FROM jobs WHERE status = 'failed' AND discarded_at IS NULL") == later[0]
    assert "jobs.discard_many" in owner.page("settings/audit")


@pytest.mark.parametrize(
    "wrong", [{"kind": "x"}, {"problem": "x"}, {"exception": "x" * 201}, {"exception": "\u2028"}, {"until": "x"}]
)
def test_a_filter_that_makes_no_sense_settles_nothing(owner: Person, api: Api, wrong: dict[str, str]) -> None:
    until = fail(api, 2)[-1]

    for verb in ("replay", "discard"):
        answer = owner.post(f"dashboard/open-failures/{verb}", {"until": until, "reason": "x", **wrong})
        assert answer.status_code in (303, 422)

    assert one("SELECT count(*) FROM jobs WHERE kind LIKE 'jobs.%%'") == 0
    assert owner.get("dashboard/open-failures", query_string=wrong).status_code in (200, 303)


def test_only_who_manages_jobs_may_do_it(agent: Person, support: Person, stranger: Person, api: Api) -> None:
    until = fail(api, 2)[-1]

    for person, status in ((agent, 403), (support, 403), (stranger, 404)):
        for verb in ("replay", "discard"):
            fields = {"until": until, "reason": "x"}
            assert person.post(f"dashboard/open-failures/{verb}", fields).status_code == status
    assert one("SELECT count(*) FROM jobs WHERE kind LIKE 'jobs.%%'") == 0
    assert "Begin a visit above" in support.page("dashboard/open-failures")


def test_a_second_one_is_refused_while_the_first_is_under_way(owner: Person, api: Api) -> None:
    until = fail(api, 2)[-1]
    api.post("contacts", {"email": "ada@example.com"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("app.web.writes.wait", lambda job: job)
        fields = {"until": until, "reason": "x"}
        owner.post("dashboard/open-failures/discard", fields)
        owner.post("dashboard/open-failures/discard", fields | {"reason": "y"})

    assert "already" in owner.page("dashboard/open-failures")
    assert one("SELECT count(*) FROM jobs WHERE kind = 'jobs.discard_many'") == 1


def test_what_takes_too_long_to_count_is_said(owner: Person, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    fail(api, 1)
    monkeypatch.setattr(parts, "LONGEST_SECONDS", 0.001)
    slow = "true AND pg_sleep(1) IS NOT NULL"
    monkeypatch.setattr("app.domain.jobs.failed_jobs._matches", lambda _: slow)

    assert "cannot be counted" in owner.page("dashboard/open-failures")


def test_the_page_asks_few_questions(owner: Person, api: Api) -> None:
    fail(api, 3)
    with counted_statements() as asked:
        owner.page("dashboard/open-failures")
    assert len(asked) <= MOST_STATEMENTS

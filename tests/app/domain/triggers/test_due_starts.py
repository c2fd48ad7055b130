"""Due starts begin the runs of triggers by time, each once."""

from __future__ import annotations

import os
from typing import Any

import pytest
from structlog.testing import capture_logs

from app.database import rows, transaction
from app.domain.automations import executions
from app.domain.triggers import due_starts, run_states
from app.domain.work import equal_parts
from tests.app.domain.triggers.timing import (
    DAY_BEFORE,
    HOUR,
    book,
    definition,
    merge,
    pass_time,
    publish,
    publish_again,
    scan_all,
    start_all,
    waits,
)
from tests.app.domain.triggers.triggering import make_contact, tag
from tests.automations import carry_on, deltas, make_automation, runs_of
from tests.cast import Api, elsewhere, in_another_process, in_threads, one

VIP = {"field": "contact.tags", "is": "contains", "value": "vip"}


def test_a_run_begins_with_the_booking_as_it_is_then(workspace_id: str, contact_id: str) -> None:
    automation_id = make_automation(workspace_id, definition())
    booking_id = book(workspace_id, contact_id, hours=48)
    tag(workspace_id, contact_id, "vip")

    assert start_all() == 0
    pass_time(hours=24)
    assert start_all() == 1

    [run] = runs_of(contact_id)
    assert (run.automation_id, run.version, run.status, run.depth) == (automation_id, 1, "queued", 1)
    assert (run.event_id, run.job_id, run.event["id"], run.event["kind"]) == (None, None, None, "booking.upcoming")
    assert run.event["data"]["booking"]["id"] == booking_id
    assert run.event["data"]["contact"]["tags"] == ["vip"]
    assert deltas() == {(automation_id, "queued"): 1}
    carry_on(workspace_id)
    assert [run.status for run in runs_of(contact_id)] == ["completed"]


@pytest.mark.parametrize(("tags", "runs"), [(["vip"], 1), ([], 0)])
def test_conditions_are_judged_when_the_time_has_come(
    workspace_id: str, contact_id: str, tags: list[str], runs: int
) -> None:
    make_automation(workspace_id, definition(DAY_BEFORE | {"if": VIP}))
    booking_id = book(workspace_id, contact_id, hours=48)
    tag(workspace_id, contact_id, *tags)

    pass_time(hours=24)
    start_all()

    assert len(runs_of(contact_id)) == runs
    assert waits() == [(booking_id, 24, True)]


@pytest.mark.parametrize(("reentry", "runs"), [(None, 1), ("every", 2), ("once", 1)])
def test_reentry_decides_whether_a_second_booking_starts_another_run(
    workspace_id: str, contact_id: str, reentry: str | None, runs: int
) -> None:
    automation_id = make_automation(workspace_id, definition(), reentry=reentry)
    book(workspace_id, contact_id, hours=2)
    book(workspace_id, contact_id, hours=3)

    assert start_all() == 2

    assert len(runs_of(contact_id)) == runs
    assert deltas().get((automation_id, "refused:reentry"), 0) == 2 - runs


def test_two_schedulers_and_one_that_dies_begin_each_run_once(
    workspace_id: str, contact_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(equal_parts, "PART", 3)
    make_automation(workspace_id, definition(), reentry="every")
    for _ in range(20):
        book(workspace_id, contact_id, hours=2)

    def die() -> None:
        begun = run_states.begin
        monkeypatch.setattr(run_states, "begin", lambda unit, start: (begun(unit, start), unit.write(), os._exit(9)))
        due_starts.start_some()

    assert in_another_process(die) == 9
    assert runs_of(contact_id) == []

    in_threads([start_all] * 3)
    start_all()
    assert len(runs_of(contact_id)) == 20
    assert len({run.event["data"]["booking"]["id"] for run in runs_of(contact_id)}) == 20


def test_a_contact_that_is_held_keeps_waiting_and_delays_nobody(workspace_id: str, contact_id: str) -> None:
    make_automation(workspace_id, definition())
    other_id = make_contact(workspace_id)
    for each in (contact_id, other_id):
        book(workspace_id, each, hours=2)

    with elsewhere(lambda: rows("SELECT 1 FROM contacts WHERE id = %s FOR UPDATE", (contact_id,))):
        assert start_all() == 1
        assert (len(runs_of(contact_id)), len(runs_of(other_id))) == (0, 1)

    assert start_all() == 1
    assert len(runs_of(contact_id)) == 1


def test_workspaces_share_a_slice(workspace_id: str, contact_id: str, others: Api, monkeypatch: Any) -> None:
    monkeypatch.setattr(equal_parts, "PART", 4)
    monkeypatch.setattr(equal_parts, "SLICE_SECONDS", 0)
    theirs = make_contact(others.workspace_id)
    for workspace in (workspace_id, others.workspace_id):
        make_automation(workspace, definition(), reentry="every")
    for _ in range(9):
        book(workspace_id, contact_id, hours=2)
    book(others.workspace_id, theirs, hours=3)

    assert due_starts.start_some() == 3

    assert (len(runs_of(contact_id)), len(runs_of(theirs))) == (2, 1)


def test_a_slice_goes_on_while_there_is_more(workspace_id: str, contact_id: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(equal_parts, "PART", 4)
    make_automation(workspace_id, definition(), reentry="every")
    for _ in range(9):
        book(workspace_id, contact_id, hours=2)

    assert due_starts.start_some() == 9


def test_a_pause_holds_the_runs_that_begin(api: Api, contact_id: str) -> None:
    automation_id = publish(api)
    book(api.workspace_id, contact_id, hours=48)
    api.done(api.post(f"automations/{automation_id}/pause"))
    pass_time(hours=24)

    start_all()
    executions.work(api.workspace_id)

    assert [(run.status, run.reason) for run in runs_of(contact_id)] == [("held", "pause")]


def test_nothing_starts_for_an_automation_that_is_unpublished(api: Api, contact_id: str) -> None:
    automation_id = publish(api)
    book(api.workspace_id, contact_id, hours=48)
    api.done(api.post(f"automations/{automation_id}/unpublish"))
    pass_time(hours=24)

    assert start_all() == 1

    assert (waits(), runs_of(contact_id)) == ([], [])


def test_what_waits_starts_the_version_that_is_published_then(api: Api, contact_id: str) -> None:
    automation_id = publish(api)
    book(api.workspace_id, contact_id, hours=48)
    publish_again(api, automation_id, DAY_BEFORE | {"if": {"not": VIP}})
    scan_all()
    pass_time(hours=24)

    assert start_all() == 1

    assert [run.version for run in runs_of(contact_id)] == [2]


def test_after_a_merge_the_run_is_that_of_the_contact_that_stays(api: Api) -> None:
    kept_id, other_id = (make_contact(api.workspace_id) for _ in range(2))
    publish(api)
    book(api.workspace_id, other_id, hours=48)

    api.done(api.post(f"contacts/{kept_id}/merge", {"contact_id": other_id}))
    pass_time(hours=24)
    start_all()

    assert len(runs_of(kept_id)) == 1


def test_while_a_merge_is_under_way_too(workspace_id: str, contact_id: str) -> None:
    make_automation(workspace_id, definition())
    kept_id = make_contact(workspace_id)
    book(workspace_id, contact_id, hours=2)

    merge(workspace_id, kept_id, contact_id)
    assert start_all() == 1

    assert len(runs_of(kept_id)) == 1


def test_while_an_erasure_is_under_way_nothing_starts(workspace_id: str, contact_id: str) -> None:
    make_automation(workspace_id, definition())
    book(workspace_id, contact_id, hours=2)
    rows("DELETE FROM contacts WHERE id = %s RETURNING 1", (contact_id,))

    assert start_all() == 1

    assert (waits(), one("SELECT count(*) FROM runs")) == ([], 0)


def test_one_that_moved_without_an_event_waits_for_its_new_time(workspace_id: str, contact_id: str) -> None:
    make_automation(workspace_id, definition())
    booking_id = book(workspace_id, contact_id, hours=25)
    pass_time(hours=1)
    rows("UPDATE bookings SET starts_at = starts_at + interval '30 minutes' RETURNING 1")

    assert start_all() == 1

    assert (waits(), runs_of(contact_id)) == ([(booking_id, 0.5, False)], [])


def test_one_that_cannot_be_started_is_reported_and_stops_no_other(
    workspace_id: str, contact_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_automation(workspace_id, definition(DAY_BEFORE | {"if": VIP}), reentry="every")
    book(workspace_id, contact_id, hours=2)
    monkeypatch.setattr(due_starts, "holds", lambda *_: 1 / 0)

    with capture_logs() as lines:
        assert start_all() == 1

    assert [line["event"] for line in lines] == ["start.failed"]
    assert (waits(), runs_of(contact_id)) == ([], [])


def test_many_cost_no_more_statements_than_a_few(workspace_id: str, statements: list[str]) -> None:
    make_automation(workspace_id, definition(DAY_BEFORE, DAY_BEFORE | {"seconds": HOUR}), reentry="every")

    def cost(size: int) -> int:
        for contact_id in [make_contact(workspace_id) for _ in range(size)]:
            book(workspace_id, contact_id, hours=2)
        statements.clear()
        with transaction():
            due_starts._start_due([workspace_id], 100)
        return len(statements)

    cost(1)

    assert cost(2) == cost(20)
    assert one("SELECT count(*) FROM runs") == 23


def test_what_is_due_is_found_by_an_index(workspace_id: str, contact_id: str) -> None:
    make_automation(workspace_id, definition())
    book(workspace_id, contact_id, hours=48)
    rows(
        """
        INSERT INTO waiting_starts (id, workspace_id, automation_id, key, booking_id, at)
        SELECT n, workspace_id, automation_id, key, booking_id, now() + n * interval '1 hour'
        FROM waiting_starts, generate_series(1, 20000) AS n RETURNING 1
        """
    )
    rows("ANALYZE waiting_starts")

    due = due_starts._DUE.replace("%(owners)s", "ARRAY['ws_1']").replace("%(each)s", "10")
    for query in (due_starts._OWNERS, due, f"SELECT {due_starts.IS_ANY_DUE}"):
        plan = "\n".join(line for (line,) in rows(f"EXPLAIN {query}"))
        assert "Index" in plan
        assert "Seq Scan on waiting_starts" not in plan

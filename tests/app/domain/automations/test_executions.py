"""Executions: runs are carried through their steps, each step once."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from app import bells, database, mailbox
from app.database import rows
from app.domain import writes
from app.domain.automations import controls, executions
from app.domain.automations.steps import STEP_KINDS
from app.domain.automations.steps.base import Outcome, StepContext, StepFailed
from app.domain.contacts import contacts
from app.domain.people import workspaces
from app.domain.triggers import run_states
from app.domain.triggers.batches import run as run_batch
from app.domain.triggers.run_states import Start
from app.lib import ids
from app.models import sets
from app.models.contacts import Contact
from app.models.runs import Run
from tests.automations import carry_on, deltas, make_automation
from tests.cast import (
    accept,
    all_of,
    apply,
    apply_until,
    elsewhere,
    event_bodies,
    event_kinds,
    in_threads,
    one,
    rung_on,
)

pytestmark = pytest.mark.usefixtures("empty")

TAG = {"id": "tag", "kind": "add_tag", "tag": "vip"}
WAIT = {"id": "pause", "kind": "wait", "seconds": 60}
NAME = {"id": "name", "kind": "set_field", "field": "first_name", "value": "Ada"}
MARKED = "SELECT 1 FROM automations WHERE json_array_length(cancellations) > 0"


@pytest.fixture
def workspace_id() -> str:
    return workspaces.create("Shop")[0].id


@pytest.fixture
def contact_id(workspace_id: str) -> str:
    return make_contact(workspace_id, "ada@example.com")


def make_contact(workspace_id: str, email: str) -> str:
    accept(workspace_id, "contacts.upsert", {"email": email})
    apply(workspace_id)
    return str(one("SELECT id FROM contacts WHERE email = %s", email))


def start(workspace_id: str, automation_id: str, contact_id: str, **fields: Any) -> Run:
    """Begins a run, as the verb of `start` does."""
    begins = Start(workspace_id, automation_id, 1, contact_id, "trace-1", **fields)
    keys = [sets.key(Contact, workspace_id, "id", contact_id)]
    with database.transaction():
        [run] = run_batch([lambda unit: run_states.begin(unit, begins)], keys)
    assert isinstance(run, Run)
    return run


def started(workspace_id: str, contact_id: str, *steps: Mapping[str, Any], **fields: Any) -> Run:
    return start(workspace_id, make_automation(workspace_id, {"steps": steps}), contact_id, **fields)


def read(run: Run) -> Run:
    return Run.get_by_id(run.id)


def log_of(run: Run) -> list[tuple[int, str, str]]:
    return rows("SELECT number, step, status FROM run_steps WHERE run_id = %s ORDER BY number", (run.id,))


def wake(run: Run) -> None:
    rows("UPDATE runs SET due_at = now(), resume_at = NULL WHERE id = %s", (run.id,))


# Steps and their log


def test_a_run_takes_all_its_steps_in_one_transaction(workspace_id: str, contact_id: str) -> None:
    run = started(workspace_id, contact_id, TAG, NAME)

    carry_on(workspace_id)

    assert read(run).status == "completed"
    contact = Contact.get_by_id(contact_id)
    assert (contact.tags, contact.first_name) == (["vip"], "Ada")
    assert log_of(run) == [(1, "tag", "succeeded"), (2, "name", "succeeded")]
    kinds = ["contact.created", "automation.started", "tag.added", "contact.updated", "automation.completed"]
    assert event_kinds(workspace_id) == kinds
    assert len(set(all_of("SELECT xmin::text FROM run_steps"))) == 1


def test_what_a_run_does_has_the_run_as_its_cause(workspace_id: str, contact_id: str) -> None:
    run = started(workspace_id, contact_id, TAG, depth=2)

    carry_on(workspace_id)

    caused = rows("SELECT DISTINCT run_id, depth, trace_id FROM events WHERE run_id IS NOT NULL")
    assert caused == [(run.id, 2, "trace-1")]


def test_the_events_of_a_run_show_it_with_its_automation_and_contact(workspace_id: str, contact_id: str) -> None:
    run = started(workspace_id, contact_id, TAG)

    carry_on(workspace_id)

    ended = next(body for body in event_bodies(workspace_id) if body["kind"] == "automation.completed")
    assert ended["data"]["automation"] == {"id": run.automation_id, "name": "Welcome", "version": 1}
    assert (ended["data"]["run"]["id"], ended["data"]["run"]["status"]) == (run.id, "completed")
    assert ended["data"]["contact"]["tags"] == ["vip"]


def test_runs_are_counted_by_status(workspace_id: str, contact_id: str) -> None:
    run = started(workspace_id, contact_id, TAG)

    carry_on(workspace_id)

    counted = {key: amount for (_, key), amount in deltas().items() if amount}
    assert counted == {"completed": 1}
    assert one("SELECT active FROM enrolments WHERE run_id = %s", run.id) == 0


def test_an_automation_without_steps_completes(workspace_id: str, contact_id: str) -> None:
    run = started(workspace_id, contact_id)

    carry_on(workspace_id)

    assert read(run).status == "completed"


# Waits


def test_a_run_waits_until_its_time_comes_and_goes_on_behind_the_wait(workspace_id: str, contact_id: str) -> None:
    run = started(workspace_id, contact_id, WAIT, TAG)

    carry_on(workspace_id)
    waiting = read(run)
    carry_on(workspace_id)
    assert (waiting.status, waiting.due_at, waiting.step) == ("waiting", None, "pause")
    assert waiting.resume_at is not None
    wake(run)
    carry_on(workspace_id)

    assert read(run).status == "completed"
    assert log_of(run) == [(1, "pause", "waiting"), (2, "pause", "succeeded"), (3, "tag", "succeeded")]


def test_a_waiting_run_does_not_block_the_contacts_other_runs(workspace_id: str, contact_id: str) -> None:
    waiting = started(workspace_id, contact_id, WAIT)
    carry_on(workspace_id)
    other = started(workspace_id, contact_id, TAG)

    carry_on(workspace_id)

    assert (read(waiting).status, read(other).status) == ("waiting", "completed")


def test_a_run_of_a_paused_automation_is_held_and_keeps_what_it_waits_for(workspace_id: str, contact_id: str) -> None:
    run = started(workspace_id, contact_id, WAIT, TAG)
    carry_on(workspace_id)
    rows("UPDATE automations SET status = 'paused'")
    wake(run)

    carry_on(workspace_id)
    held = read(run)
    rows("UPDATE automations SET status = 'published'")
    wake(run)
    carry_on(workspace_id)

    assert (held.status, held.reason, held.due_at, held.waits_for) == ("held", "pause", None, "time")
    assert read(run).status == "completed"
    assert log_of(run)[-1] == (3, "tag", "succeeded")


def test_a_run_held_by_who_saw_the_pause_before_it_ended_is_released(workspace_id: str, contact_id: str) -> None:
    run = started(workspace_id, contact_id, TAG)
    rows("UPDATE automations SET status = 'paused'")

    with elsewhere(lambda: carry_on(workspace_id)):
        accept(workspace_id, "automations.resume", {}, run.automation_id)
        apply(workspace_id)
        ended = one("SELECT status FROM automations")
        assert controls.release_held() == 0  # nobody can see yet that it is held
    held = read(run)
    assert controls.release_held() == 1
    carry_on(workspace_id)

    assert (ended, held.status, held.reason, held.due_at) == ("published", "held", "pause", None)
    assert (read(run).status, controls.release_held()) == ("completed", 0)


def test_only_runs_whose_automation_is_paused_stay_held(workspace_id: str, contact_id: str) -> None:
    paused, published, deleted = (started(workspace_id, contact_id, TAG) for _ in range(3))
    rows("UPDATE automations SET status = 'paused'")
    carry_on(workspace_id)
    rows("UPDATE automations SET status = 'published' WHERE id = %s", (published.automation_id,))
    rows("DELETE FROM automations WHERE id = %s", (deleted.automation_id,))

    assert controls.release_held() == 2
    carry_on(workspace_id)

    assert [read(run).status for run in (paused, published, deleted)] == ["held", "completed", "cancelled"]


def test_a_run_takes_no_step_once_its_cancellation_is_accepted_and_marked(workspace_id: str, contact_id: str) -> None:
    other_id = make_contact(workspace_id, "bob@example.com")
    automation_id = make_automation(workspace_id, {"steps": [WAIT, TAG]})
    run, other, held_up = (start(workspace_id, automation_id, each) for each in (contact_id, contact_id, other_id))
    carry_on(workspace_id)
    accept(workspace_id, "automations.cancel_runs", {"before": ids.new("run")}, automation_id)

    # Workers have the head of the walk, which so does not get to the others.
    with elsewhere(lambda: rows("SELECT FROM contacts FOR NO KEY UPDATE")):
        apply_until(workspace_id, MARKED)
    later = start(workspace_id, automation_id, contact_id)
    for each in (run, other, held_up):
        wake(each)
    carry_on(workspace_id)

    assert [read(each).status for each in (run, other, held_up, later)] == [*["cancelled"] * 3, "waiting"]
    assert all_of("SELECT DISTINCT reason FROM runs WHERE status = 'cancelled'") == ["request"]
    assert all_of("SELECT tags FROM contacts") == [[], []]
    apply(workspace_id)
    assert one("SELECT cancellations FROM automations") == []
    wake(later)
    carry_on(workspace_id)
    assert read(later).status == "completed"


def test_a_run_that_begins_while_its_automation_is_being_deleted_is_cancelled(
    workspace_id: str, contact_id: str
) -> None:
    automation_id = make_automation(workspace_id, {"steps": [TAG]})
    accept(workspace_id, "automations.delete", {}, automation_id)
    with elsewhere(lambda: rows("SELECT FROM automation_versions FOR UPDATE")):
        apply_until(workspace_id, MARKED)
    run = start(workspace_id, automation_id, contact_id)

    carry_on(workspace_id)

    assert (read(run).status, Contact.get_by_id(contact_id).tags) == ("cancelled", [])
    apply(workspace_id)
    assert all_of("SELECT id FROM automations") == []


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        ({"status": "waiting"}, "cancelled"),
        ({"status": "queued"}, "completed"),
        ({"contact_id": "con_other"}, "completed"),
        ({"since": "2126-01-01T00:00:00+00:00"}, "completed"),
        ({"until": "2026-01-01T00:00:00+00:00"}, "completed"),
    ],
    ids=str,
)
def test_a_mark_cancels_only_what_its_filters_choose(
    workspace_id: str, contact_id: str, payload: dict[str, Any], expected: str
) -> None:
    run = started(workspace_id, contact_id, WAIT, TAG)
    carry_on(workspace_id)
    accept(workspace_id, "automations.cancel_runs", {**payload, "before": ids.new("run")}, run.automation_id)
    with elsewhere(lambda: rows("SELECT FROM contacts FOR NO KEY UPDATE")):
        writes.work(workspace_id)
    wake(run)

    carry_on(workspace_id)

    assert read(run).status == expected


# Failures


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kind of step that adds a tag, then breaks."""

    def begin(context: StepContext) -> Outcome:
        STEP_KINDS["add_tag"].begin(context)
        raise RuntimeError("broken")

    monkeypatch.setitem(STEP_KINDS, "broken", replace(STEP_KINDS["stop"], begin=begin))


@pytest.mark.usefixtures("broken")
def test_a_run_that_raises_is_undone_alone_and_fails(workspace_id: str, contact_id: str) -> None:
    other_id = make_contact(workspace_id, "bob@example.com")
    run = started(workspace_id, contact_id, {"id": "bad", "kind": "broken", "tag": "bad"})
    other = started(workspace_id, other_id, TAG)

    carry_on(workspace_id)

    assert (read(run).status, read(other).status) == ("failed", "completed")
    assert read(run).failure["code"] == "error"
    assert Contact.get_by_id(contact_id).tags == []
    assert "automation.failed" in event_kinds(workspace_id)


def test_a_run_whose_changes_cannot_be_written_fails_and_the_others_go_on(
    workspace_id: str, contact_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def begin(context: StepContext) -> Outcome:
        return contacts.update(context.change({"first_name": "a\0"}, context.contact.id))  # type: ignore[return-value]

    monkeypatch.setitem(STEP_KINDS, "broken", replace(STEP_KINDS["stop"], begin=begin))
    other_id = make_contact(workspace_id, "bob@example.com")
    run = started(workspace_id, contact_id, TAG, {"id": "bad", "kind": "broken"})
    other = started(workspace_id, other_id, TAG)

    carry_on(workspace_id)

    assert (read(run).status, read(other).status) == ("failed", "completed")
    assert read(run).failure["code"] == "error"
    assert Contact.get_by_id(contact_id).tags == []
    assert one("SELECT active FROM enrolments WHERE run_id = %s", run.id) == 0


def test_a_step_that_cannot_be_done_fails_its_run_and_keeps_what_went_before(
    workspace_id: str, contact_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def begin(context: StepContext) -> Outcome:
        raise StepFailed("gone", "The channel is gone.")

    monkeypatch.setitem(STEP_KINDS, "failing", replace(STEP_KINDS["stop"], begin=begin))
    run = started(workspace_id, contact_id, TAG, {"id": "bad", "kind": "failing"}, NAME)

    carry_on(workspace_id)

    failed = read(run)
    assert failed.failure == {"code": "gone", "detail": "The channel is gone.", "step": "bad"}
    assert log_of(run) == [(1, "tag", "succeeded"), (2, "bad", "failed")]
    assert Contact.get_by_id(contact_id).tags == ["vip"]


def test_a_run_without_a_wait_ends_at_its_limit(
    workspace_id: str, contact_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tags = [{"id": f"tag-{number}", "kind": "add_tag", "tag": f"t{number % 3}"} for number in range(260)]
    run = started(workspace_id, contact_id, *tags)

    carry_on(workspace_id)

    failed = read(run)
    assert (failed.status, failed.failure["code"], failed.failure["step"]) == ("failed", "limit", "tag-250")


def test_the_run_of_a_deleted_automation_is_cancelled(workspace_id: str, contact_id: str) -> None:
    run = started(workspace_id, contact_id, TAG)
    rows("DELETE FROM automations")

    carry_on(workspace_id)

    assert (read(run).status, Contact.get_by_id(contact_id).tags) == ("cancelled", [])


# Locks and claims


def test_a_run_whose_contact_is_locked_waits_and_the_others_go_on(workspace_id: str, contact_id: str) -> None:
    other_id = make_contact(workspace_id, "bob@example.com")
    run, other = started(workspace_id, contact_id, TAG), started(workspace_id, other_id, TAG)
    held, let_go = threading.Event(), threading.Event()

    def hold() -> None:
        with database.transaction():
            rows("SELECT FROM contacts WHERE id = %s FOR NO KEY UPDATE", (contact_id,))
            held.set()
            let_go.wait(20)

    def execute() -> tuple[str, str]:
        held.wait(20)
        try:
            executions.work(workspace_id)
            return read(run).status, read(other).status
        finally:
            let_go.set()

    _, seen = in_threads([hold, execute])
    carry_on(workspace_id)

    assert seen == ("queued", "completed")
    assert read(run).status == "completed"


def test_a_worker_whose_claim_is_stale_does_nothing(workspace_id: str, contact_id: str) -> None:
    run = started(workspace_id, contact_id, TAG)
    stale = mailbox.claim(run_states.MAIL, {workspace_id: 10}, 5)
    rows("UPDATE runs SET leased_until = NULL")
    carry_on(workspace_id)

    executions._work_on(stale)

    assert log_of(run) == [(1, "tag", "succeeded")]
    assert event_kinds(workspace_id).count("tag.added") == 1


def test_a_worker_whose_claim_is_stale_does_not_end_a_wait(workspace_id: str, contact_id: str) -> None:
    run = started(workspace_id, contact_id, TAG, WAIT, NAME)
    stale = mailbox.claim(run_states.MAIL, {workspace_id: 10}, 5)
    rows("UPDATE runs SET leased_until = NULL")
    carry_on(workspace_id)
    before = log_of(run)

    executions._work_on(stale)

    assert (read(run).status, log_of(run)) == ("waiting", before)


def test_the_steps_of_a_contacts_runs_never_overlap(workspace_id: str, contact_id: str) -> None:
    """Each of forty runs reads a number and stores the next one; four workers share them."""
    step = {"id": "up", "kind": "set_field", "field": "score", "value": "{{ contact.custom_fields.score | plus: 1 }}"}
    automation_id = make_automation(workspace_id, {"steps": [step]})
    runs = [start(workspace_id, automation_id, contact_id) for _ in range(40)]

    def serve() -> None:
        while one("SELECT count(*) FROM runs WHERE due_at IS NOT NULL"):
            carry_on(workspace_id)

    in_threads([serve] * 4)

    assert int(Contact.get_by_id(contact_id).custom_fields["score"]) == 40
    assert {read(run).status for run in runs} == {"completed"}
    assert one("SELECT active FROM enrolments") == 0


def test_the_statements_of_a_batch_do_not_grow_with_its_runs(workspace_id: str, contact_id: str) -> None:
    automation_id = make_automation(workspace_id, {"steps": [TAG, NAME]})

    def statements(contacts: int) -> int:
        ids = [make_contact(workspace_id, f"c{contacts}-{number}@example.com") for number in range(contacts)]
        for each in ids:
            start(workspace_id, automation_id, each)
        batch, executed = mailbox.claim(run_states.MAIL, {workspace_id: 100}, 5), []
        execute = database.database._execute
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(database.database, "_execute", lambda sql, *rest: executed.append(sql) or execute(sql, *rest))
            executions._work_on(batch)
        return len(executed)

    statements(1)  # prepares them
    assert statements(30) == statements(2)


def test_runs_of_several_workspaces_share_a_batch(workspace_id: str, contact_id: str) -> None:
    other = workspaces.create("Other shop")[0].id
    runs = [started(workspace_id, contact_id, TAG, NAME), started(other, make_contact(other, "bo@example.com"), TAG)]

    executions.work(workspace_id, other)

    assert [read(run).status for run in runs] == ["completed", "completed"]
    assert event_kinds(workspace_id)[-1] == event_kinds(other)[-1] == "automation.completed"
    assert one("SELECT count(DISTINCT xmin::text) FROM runs") == 1


def test_a_run_that_found_its_contact_locked_rings_for_itself(workspace_id: str, contact_id: str) -> None:
    started(workspace_id, contact_id, TAG)
    bells.flush(20)
    bells.flags().flushdb()
    held, let_go = threading.Event(), threading.Event()

    def hold() -> None:
        with database.transaction():
            rows("SELECT FROM contacts WHERE id = %s FOR NO KEY UPDATE", (contact_id,))
            held.set()
            let_go.wait(20)

    def execute() -> None:
        held.wait(20)
        try:
            executions.work(workspace_id)
        finally:
            let_go.set()

    in_threads([hold, execute])

    assert rung_on("runs") == [workspace_id]

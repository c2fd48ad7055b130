"""How long runs may compute: a step within its budget, a batch within half a second, heavy workspaces apart."""

from __future__ import annotations

from typing import Any

import pytest

from app import bounds, mailbox
from app.database import transaction
from app.domain.automations import executions
from app.domain.people import workspaces
from app.domain.triggers import batches, run_states
from app.domain.work import fairness, units
from app.domain.work.fairness import Room, Turns
from app.mailbox import Claimed
from app.models.runs import Run
from tests.app.domain.automations.test_executions import NAME, TAG, log_of, make_contact, read, started
from tests.automations import carry_on
from tests.bounding import set_bound
from tests.cast import one, rung_on

pytestmark = pytest.mark.usefixtures("empty")

LOOP = "{% for i in (1..2000) %}{{ contact.email | upcase | size }}{% endfor %}"


def request(*templates: str) -> dict[str, Any]:
    address = "https://shop.example/hooks"
    return {"id": "call", "kind": "http_request", "method": "POST", "address": address, "body": list(templates)}


@pytest.fixture
def workspace_id() -> str:
    return workspaces.create("Shop")[0].id


@pytest.fixture
def contact_id(workspace_id: str) -> str:
    return make_contact(workspace_id, "ada@example.com")


def test_a_step_with_many_legal_templates_fails_with_limit(workspace_id: str, contact_id: str) -> None:
    run = started(workspace_id, contact_id, TAG, request(*["{{ contact.email }}" + " " * 300] * 1_000), NAME)

    carry_on(workspace_id)

    assert read(run).failure == {
        "code": "limit",
        "detail": "The templates of this step take more than 100,000 steps together. Use fewer or shorter ones.",
        "step": "call",
    }
    assert log_of(run) == [(1, "tag", "succeeded"), (2, "call", "failed")]


def test_a_request_of_a_thousand_short_templates_is_within_the_budget(workspace_id: str, contact_id: str) -> None:
    run = started(workspace_id, contact_id, request(*["{{ contact.email }}"] * 1_000))

    carry_on(workspace_id)

    assert (read(run).status, read(run).waits_for) == ("running", "response")


def test_the_budget_of_a_step_is_its_own(workspace_id: str, contact_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    set_bound(monkeypatch, "COMPUTING_PER_STEP", 60)
    run = started(workspace_id, contact_id, *({**TAG, "id": f"tag{n}", "tag": "{{ contact.id }}"} for n in range(5)))

    carry_on(workspace_id)

    assert read(run).status == "completed"


def test_a_batch_commits_after_half_a_second_and_leaves_the_rest(
    workspace_id: str, contact_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = [make_contact(workspace_id, f"{number}@example.com") for number in range(3)]
    runs = [started(workspace_id, each, TAG, NAME) for each in (contact_id, *others)]
    monkeypatch.setattr(units, "LONG_SECONDS", 0)

    left = executions._carry_out(mailbox.claim(run_states.MAIL, {workspace_id: 10}, 5))
    steps = one("SELECT count(*) FROM run_steps")
    mailbox.release(run_states.MAIL, left)
    carry_on(workspace_id)

    assert (len(left), steps) == (3, 1)  # in a unit that is long, a run takes one step
    assert {run.status for run in map(read, runs)} == {"completed"}
    assert one("SELECT count(*) FROM run_steps") == 2 * len(runs)
    assert one("SELECT sum(deaths) FROM runs") == 0


@pytest.mark.parametrize("in_order", [True, False])
def test_tasks_that_are_left_have_no_effect(workspace_id: str, monkeypatch: pytest.MonkeyPatch, in_order: bool) -> None:
    done = []
    monkeypatch.setattr(units, "LONG_SECONDS", 0)
    monkeypatch.setattr(batches, "LONG_SECONDS", 0)

    for run in (batches.run_each, lambda tasks, in_order: batches.run(tasks, [], in_order=in_order)):
        with transaction():
            results = run([lambda _, n=n: done.append(n) for n in range(3)], in_order=in_order)
        assert [type(result) for result in results] == [type(None), *([] if in_order else [units.Busy] * 2)]

    assert done == [0, 0]


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> Turns:
    """Counts every run, however short, in a process that has carried out none."""
    monkeypatch.setattr(fairness, "LEAST_SECONDS", 0.0)
    monkeypatch.setattr(executions, "TURNS", Turns())
    return executions.TURNS


def test_workspaces_that_have_computed_least_go_first(turns: Turns) -> None:
    batch = [Claimed(f"run_{number}", owner, 1, (), 0.0, False) for number, owner in enumerate("aabbc")]
    assert turns.ordered(batch) == batch

    with turns.of("a"), turns.of("b"):
        pass
    with turns.of("a"):
        pass

    assert [each.owner for each in turns.ordered(batch)] == ["c", "b", "b", "a", "a"]
    assert [each.id for each in turns.ordered(batch)][-2:] == ["run_0", "run_1"]


def test_what_was_computed_long_ago_counts_no_more(turns: Turns, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fairness, "SPAN_SECONDS", 0.0)
    for owner in ("a", "b", "b"):
        with turns.of(owner):
            pass
    batch = [Claimed("run_1", "a", 1, (), 0.0, False), Claimed("run_2", "b", 1, (), 0.0, False)]

    assert turns.ordered(batch) == batch


def test_runs_that_compute_for_an_instant_make_no_workspace_heavy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fairness, "HEAVY_SECONDS", 0.0)
    turns = Turns()

    with turns.of("light"):
        pass
    monkeypatch.setattr(fairness, "LEAST_SECONDS", 0.0)
    with turns.of("heavy"):
        pass

    assert [turns.is_heavy(each) for each in ("light", "heavy")] == [False, True]


def test_mailboxes_without_a_thread_are_named_once_when_one_is_free() -> None:
    room, runs = Room(bounds.RUNS_HEAVY), run_states.MAIL

    entered = [room.enter(None, runs, "a"), room.enter(None, runs, "b", "c"), room.enter(None, runs, "b")]

    assert entered == [True, False, False]
    assert room.leave(None) == [(runs, "b"), (runs, "c")]
    assert room.enter(None, runs, "b")
    assert room.leave(None) == []


def test_mailboxes_take_turns_and_those_of_one_key_wait_for_no_other() -> None:
    room, runs = Room(bounds.BROADCASTS_PER_WORKSPACE, most_rung=1), run_states.MAIL

    entered = [room.enter(key, runs, owner) for key, owner in (("one", "a"), ("two", "x"), ("one", "b"), ("one", "c"))]

    assert entered == [True, True, False, False]
    assert (room.leave("two"), room.leave("one")) == ([], [(runs, "b")])
    assert room.enter("one", runs, "b")
    assert room.leave("one") == [(runs, "c")]


def test_heavy_workspaces_wait_for_a_thread_and_are_rung_for(
    workspace_id: str, contact_id: str, turns: Turns, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = workspaces.create("Light")[0].id
    heavy, light = started(workspace_id, contact_id, TAG), started(other, make_contact(other, "a@example.com"), TAG)
    monkeypatch.setattr(fairness, "HEAVY_SECONDS", 0.0)
    with turns.of(workspace_id):
        pass

    with executions.HEAVY.thread(None, run_states.MAIL):
        executions.work(workspace_id, other)
        without = read(heavy).status, read(light).status
    assert workspace_id in rung_on("runs")
    executions.work(workspace_id)

    assert (without, read(heavy).status) == (("queued", "completed"), "completed")


def test_a_batch_leaves_the_runs_of_a_workspace_that_becomes_heavy(
    workspace_id: str, contact_id: str, turns: Turns, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [started(workspace_id, each, TAG) for each in (contact_id, make_contact(workspace_id, "b@example.com"))]
    monkeypatch.setattr(fairness, "HEAVY_SECONDS", 0.0)

    left = executions._carry_out(mailbox.claim(run_states.MAIL, {workspace_id: 10}, 5))
    mailbox.release(run_states.MAIL, left)
    carry_on(workspace_id)

    assert [claimed.id for claimed in left] == [runs[1].id]
    assert {run.status for run in map(read, runs)} == {"completed"}


def test_who_had_no_thread_is_rung_for_when_one_is_free(
    workspace_id: str, contact_id: str, turns: Turns, monkeypatch: pytest.MonkeyPatch
) -> None:
    started(workspace_id, contact_id, TAG)
    monkeypatch.setattr(fairness, "HEAVY_SECONDS", 0.0)
    monkeypatch.setattr(executions, "_work_on", lambda batch: executions.work("ws_other"))
    for each in (workspace_id, "ws_other"):
        with turns.of(each):
            pass

    executions.work(workspace_id)

    assert "ws_other" in rung_on("runs")


def test_a_run_fails_where_a_loop_would_take_more_than_a_template_may(workspace_id: str, contact_id: str) -> None:
    run: Run = started(workspace_id, contact_id, {**TAG, "tag": LOOP * 2})

    carry_on(workspace_id)

    assert read(run).failure["code"] == "template"


def test_a_step_whose_condition_compares_too_much_fails_with_limit(workspace_id: str, contact_id: str) -> None:
    values = [f"value {number}" for number in range(100)]
    comparison = {"field": "trigger.variables.values", "is": "one_of", "value": values}
    branch = {"id": "which", "kind": "branch", "if": {"any": [comparison] * 11}, "then": [], "else": []}
    run = started(workspace_id, contact_id, branch, variables={"values": ["other"] * 100})

    carry_on(workspace_id)

    assert read(run).failure == {
        "code": "limit",
        "detail": "The condition of this step takes more than 100,000 steps. Compare less, or shorter lists and texts.",
        "step": "which",
    }

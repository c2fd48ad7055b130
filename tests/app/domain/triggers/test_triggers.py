"""Triggers and exits: what events start and end, once each, in the transaction of the event or soon after."""

from __future__ import annotations

from collections import Counter
from functools import partial

import pytest

from app.database import rows
from app.domain import writes
from app.domain.automations import counts, run_history
from app.domain.triggers import automation_listeners, run_endings, run_states, triggers
from app.domain.work.units import Unit
from app.lib import ids
from app.models.runs import Run
from tests.app.domain.triggers.triggering import BYE, VIP, adding, do, make_contact, start_of, tag, unfollowed
from tests.automations import carry_on, deltas, make_automation, runs_of
from tests.bounding import set_bound
from tests.cast import Api, accept, all_of, apply, event_bodies, event_kinds, in_threads, one


def finish(run: Run) -> None:
    def task(unit: Unit) -> None:
        there = unit.get(Run, run.workspace_id, "id", run.id)
        run_endings.finish(unit, there, "completed", automation_name="Welcome")

    do(run.workspace_id, run.contact_id, task)


# What starts


def test_an_event_starts_a_run_that_knows_its_cause(workspace_id: str, contact_id: str) -> None:
    automation_id = make_automation(workspace_id, {"triggers": [VIP]})

    tag(workspace_id, contact_id, "vip")

    [run] = runs_of(contact_id)
    [event] = [body for body in event_bodies(workspace_id) if body["kind"] == "tag.added"]
    assert (run.automation_id, run.version, run.status, run.depth) == (automation_id, 1, "queued", 1)
    assert (run.event, run.event_id, run.trace_id, run.job_id) == (event, event["id"], "trace-1", None)
    assert run.due_at is not None
    assert one("SELECT active FROM enrolments") == 1
    assert deltas() == {(automation_id, "queued"): 1}
    assert unfollowed() == 0


def test_a_contact_made_with_a_tag_starts_what_the_tag_and_the_making_start(workspace_id: str) -> None:
    by_tag = make_automation(workspace_id, {"triggers": [VIP]})
    by_making = make_automation(workspace_id, {"triggers": [{"event": "contact.created"}]})
    make_automation(workspace_id, {"triggers": [BYE]})

    contact_id = make_contact(workspace_id, tags=["vip"])

    assert {run.automation_id for run in runs_of(contact_id)} == {by_tag, by_making}


def test_a_trigger_without_a_tag_takes_any_tag(workspace_id: str, contact_id: str) -> None:
    make_automation(workspace_id, {"triggers": [{"event": "tag.added"}]}, reentry="every")

    tag(workspace_id, contact_id, "a", "b")

    assert [run.event["data"]["tag"] for run in runs_of(contact_id)] == ["a", "b"]


def test_a_condition_is_held_against_the_event(workspace_id: str) -> None:
    german = {"field": "contact.locale", "is": "equals", "value": "de"}
    make_automation(workspace_id, {"triggers": [VIP | {"if": german}]})

    there = make_contact(workspace_id, tags=["vip"], locale="de")
    elsewhere = make_contact(workspace_id, tags=["vip"], locale="fr")

    assert (len(runs_of(there)), len(runs_of(elsewhere))) == (1, 0)


def test_an_event_that_several_triggers_match_starts_one_run(workspace_id: str, contact_id: str) -> None:
    make_automation(workspace_id, {"triggers": [VIP, {"event": "tag.added"}, VIP]}, reentry="every")

    tag(workspace_id, contact_id, "vip")

    assert len(runs_of(contact_id)) == 1


@pytest.mark.parametrize(("status", "runs"), [("draft", 0), ("unpublished", 0), ("paused", 1), ("published", 1)])
def test_only_published_and_paused_automations_start(
    workspace_id: str, contact_id: str, status: str, runs: int
) -> None:
    make_automation(workspace_id, {"triggers": [VIP]}, status=status)

    tag(workspace_id, contact_id, "vip")

    assert len(runs_of(contact_id)) == runs


def test_events_start_nothing_in_other_workspaces(api: Api, others: Api) -> None:
    ours, theirs = (make_automation(each.workspace_id, {"triggers": [VIP]}) for each in (api, others))

    mine = make_contact(api.workspace_id, tags=["vip"])

    assert [run.automation_id for run in runs_of(mine)] == [ours]
    other = make_contact(others.workspace_id, tags=["vip"])
    assert [run.automation_id for run in runs_of(other)] == [theirs]


@pytest.mark.parametrize("kind", sorted(automation_listeners.UNHEARD))
def test_what_bellhop_sends_triggers_nothing(workspace_id: str, contact_id: str, kind: str) -> None:
    make_automation(workspace_id, {"triggers": [{"event": kind}]})

    do(workspace_id, contact_id, lambda unit: unit.recorder(workspace_id).record(kind, {}, contact_id))

    assert kind in event_kinds(workspace_id)
    assert runs_of(contact_id) == []


def test_a_message_of_a_contact_is_a_trigger(workspace_id: str, contact_id: str) -> None:
    asks = {"field": "trigger.event.data.message.text", "is": "contains", "value": "help"}
    make_automation(workspace_id, {"triggers": [{"event": "message.received", "if": asks}]})
    data = {"message": {"text": "Please help"}}

    do(workspace_id, contact_id, lambda unit: unit.recorder(workspace_id).record("message.received", data, contact_id))

    assert len(runs_of(contact_id)) == 1


# Who may enter again


@pytest.mark.parametrize(
    ("reentry", "while_active", "after_finish"), [(None, 1, 2), ("after_finish", 1, 2), ("every", 2, 3), ("once", 1, 1)]
)
def test_reentry_decides_whether_an_event_starts_another_run(
    workspace_id: str, contact_id: str, reentry: str | None, while_active: int, after_finish: int
) -> None:
    automation_id = make_automation(workspace_id, {"triggers": [{"event": "tag.added"}]}, reentry=reentry)
    tag(workspace_id, contact_id, "a")

    tag(workspace_id, contact_id, "b")
    assert len(runs_of(contact_id)) == while_active
    for run in runs_of(contact_id):
        finish(run)
    tag(workspace_id, contact_id, "c")

    assert len(runs_of(contact_id)) == after_finish
    assert deltas().get((automation_id, "refused:reentry"), 0) == 3 - after_finish


def test_of_events_at_the_same_moment_one_starts_a_run(workspace_id: str, contact_id: str) -> None:
    automation_id = make_automation(workspace_id, {"triggers": [{"event": "tag.added"}]})

    tasks = [partial(do, workspace_id, contact_id, adding(workspace_id, contact_id, f"t-{n}")) for n in range(8)]
    results = in_threads(tasks)

    assert all(isinstance(result, list) for result in results), results
    assert len(runs_of(contact_id)) == 1
    assert deltas() == {(automation_id, "queued"): 1, (automation_id, "refused:reentry"): 7}


# Chains


def test_a_chain_of_automations_ends_after_ten_runs(workspace_id: str, contact_id: str) -> None:
    def passing(given: str, other: str) -> str:
        steps = [{"id": "remove", "kind": "remove_tag", "tag": given}, {"id": "add", "kind": "add_tag", "tag": other}]
        trigger = {"event": "tag.added", "tag": given}
        return make_automation(workspace_id, {"triggers": [trigger], "steps": steps}, reentry="every")

    a, b = passing("a", "b"), passing("b", "a")

    tag(workspace_id, contact_id, "a")
    carry_on(workspace_id)

    assert [(run.automation_id, run.depth) for run in runs_of(contact_id)] == [
        ([a, b][depth % 2 == 0], depth) for depth in range(1, 11)
    ]
    assert {run.status for run in runs_of(contact_id)} == {"completed"}
    assert deltas()[a, "refused:depth"] == 1


def test_a_chain_that_spreads_ends_where_it_has_many_runs(
    workspace_id: str, contact_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_bound(monkeypatch, "RUNS_OF_CHAIN", 12)
    change = {"id": "change", "kind": "set_field", "field": "first_name", "value": "{{ contact.first_name | plus: 1 }}"}
    definition = {"triggers": [VIP, BYE, {"event": "contact.updated"}], "steps": [change]}
    automation_ids = [make_automation(workspace_id, definition, reentry="every") for _ in range(3)]

    tag(workspace_id, contact_id, "vip")
    carry_on(workspace_id)
    one_chain = Counter(run.depth for run in runs_of(contact_id))
    rows("UPDATE runs SET trace_id = 'another cause'")
    tag(workspace_id, contact_id, "bye")
    carry_on(workspace_id)

    assert one_chain == {1: 3, 2: 9}
    assert Counter(run.depth for run in runs_of(contact_id)) == {1: 6, 2: 18}
    assert [deltas()[id, "refused:depth"] for id in automation_ids] == [18] * 3


def test_a_step_starts_none_where_a_chain_has_many_runs(
    workspace_id: str, contact_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_bound(monkeypatch, "RUNS_OF_CHAIN", 2)
    following = None
    for trigger in ([], [], [], [VIP]):
        steps = [{"id": "next", "kind": "start_automation", "automation_id": following}] if following else []
        following = make_automation(workspace_id, {"triggers": trigger, "steps": steps})

    tag(workspace_id, contact_id, "vip")
    carry_on(workspace_id)

    assert [run.status for run in runs_of(contact_id)] == ["completed", "failed"]
    assert runs_of(contact_id)[-1].failure["code"] == "limit"


def test_automations_that_start_each_other_fail_after_ten(workspace_id: str, contact_id: str) -> None:
    automation_ids = [ids.new("aut") for _ in range(3)]
    for id, following in zip(automation_ids, [*automation_ids[1:], automation_ids[0]], strict=True):
        steps = [{"id": "next", "kind": "start_automation", "automation_id": following}]
        make_automation(workspace_id, {"triggers": [VIP] if id == automation_ids[0] else [], "steps": steps}, id=id)

    tag(workspace_id, contact_id, "vip")
    carry_on(workspace_id)

    *others, last = runs_of(contact_id)
    assert [run.depth for run in (*others, last)] == list(range(1, 11))
    assert {run.status for run in others} == {"completed"}
    assert (last.status, last.failure["code"]) == ("failed", "limit")


def test_a_run_may_end_itself_by_its_exit(workspace_id: str, contact_id: str) -> None:
    steps = [{"id": "bye", "kind": "add_tag", "tag": "bye"}, {"id": "long", "kind": "wait", "seconds": 60}]
    make_automation(workspace_id, {"triggers": [VIP], "steps": steps}, exits=[BYE])

    tag(workspace_id, contact_id, "vip")
    carry_on(workspace_id)

    [run] = runs_of(contact_id)
    assert (run.status, run.reason, run.resume_at) == ("cancelled", "exit", None)
    told = [kind for kind in event_kinds(workspace_id) if kind.startswith("automation.")]
    assert told == ["automation.started", "automation.cancelled"]


def test_the_end_of_a_run_is_an_event_that_others_start_with(workspace_id: str, contact_id: str) -> None:
    first = make_automation(workspace_id, {"triggers": [VIP]}, exits=[BYE])
    second = make_automation(workspace_id, {"triggers": [{"event": "automation.cancelled"}]})
    tag(workspace_id, contact_id, "vip")

    tag(workspace_id, contact_id, "bye")

    found = [(run.automation_id, run.status, run.depth) for run in runs_of(contact_id)]
    assert found == [(first, "cancelled", 1), (second, "queued", 2)]
    assert unfollowed() == 0


def test_what_follows_too_far_is_left_to_the_fan_out(
    workspace_id: str, contact_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(triggers, "ROUNDS", 1)
    make_automation(workspace_id, {"triggers": [VIP]}, exits=[BYE])
    second = make_automation(workspace_id, {"triggers": [{"event": "automation.cancelled"}]})
    tag(workspace_id, contact_id, "vip", "bye")
    assert [run.status for run in runs_of(contact_id)] == ["cancelled"]

    apply(workspace_id)

    assert [run.automation_id for run in runs_of(contact_id)][1:] == [second]
    assert unfollowed() == 0


# Exits


def test_an_exit_ends_the_contacts_runs_of_the_automation(workspace_id: str, contact_id: str) -> None:
    leaving = make_automation(workspace_id, {"triggers": [VIP]}, exits=[BYE])
    staying = make_automation(workspace_id, {"triggers": [VIP]})
    other_id = make_contact(workspace_id, tags=["vip"])
    tag(workspace_id, contact_id, "vip")

    tag(workspace_id, contact_id, "bye")

    ended, going_on = sorted(runs_of(contact_id), key=lambda run: run.status)
    assert (ended.automation_id, ended.status, ended.reason) == (leaving, "cancelled", "exit")
    assert (ended.due_at, ended.finished_at is None) == (None, False)
    assert (going_on.automation_id, going_on.status) == (staying, "queued")
    assert {run.status for run in runs_of(other_id)} == {"queued"}
    [event] = [body for body in event_bodies(workspace_id) if body["kind"] == "automation.cancelled"]
    assert event["data"]["run"]["id"] == ended.id
    assert event["data"]["automation"] == {"id": leaving, "name": "Welcome", "version": 1}
    assert deltas()[leaving, "cancelled"] == 1
    assert one("SELECT active FROM enrolments WHERE automation_id = %s AND contact_id = %s", leaving, contact_id) == 0


def test_an_exit_with_a_condition_ends_runs_only_if_it_holds(workspace_id: str, contact_id: str) -> None:
    exits = [{"event": "tag.added", "if": {"field": "contact.tags", "is": "contains", "value": "b"}}]
    make_automation(workspace_id, {"triggers": [VIP]}, exits=exits)
    tag(workspace_id, contact_id, "vip", "a")
    assert [run.status for run in runs_of(contact_id)] == ["queued"]

    tag(workspace_id, contact_id, "b")

    assert [run.status for run in runs_of(contact_id)] == ["cancelled"]


def test_an_event_that_ends_and_starts_runs_of_an_automation_starts_it_afresh(
    workspace_id: str, contact_id: str
) -> None:
    make_automation(workspace_id, {"triggers": [{"event": "tag.added"}]}, exits=[{"event": "tag.added"}])

    tag(workspace_id, contact_id, "a", "b", "c")

    assert [run.status for run in runs_of(contact_id)] == ["cancelled", "cancelled", "queued"]
    assert one("SELECT active FROM enrolments") == 1


def test_an_exit_ends_runs_of_an_automation_that_is_no_longer_published(workspace_id: str, contact_id: str) -> None:
    automation_id = make_automation(workspace_id, {"triggers": [VIP]}, exits=[BYE])
    tag(workspace_id, contact_id, "vip")
    rows("UPDATE automations SET status = 'unpublished', version = NULL WHERE id = %s", (automation_id,))

    tag(workspace_id, contact_id, "bye")

    assert [run.status for run in runs_of(contact_id)] == ["cancelled"]


def test_an_exit_does_not_end_what_was_started_after_it_in_the_same_transaction(
    workspace_id: str, contact_id: str
) -> None:
    automation_id = make_automation(workspace_id, exits=[BYE])
    start = start_of(workspace_id, contact_id, automation_id)

    def begin(unit: Unit) -> None:
        run_states.begin(unit, start)

    do(workspace_id, contact_id, begin, adding(workspace_id, contact_id, "bye"), begin)

    assert [run.status for run in runs_of(contact_id)] == ["cancelled", "queued"]


def test_an_exit_does_not_end_a_run_whose_start_was_accepted_behind_it(workspace_id: str, contact_id: str) -> None:
    automation_id = make_automation(workspace_id, exits=[BYE])
    run_id = ids.new("run")
    accept(workspace_id, "contacts.add_tag", {"name": "bye"}, contact_id)
    accept(workspace_id, "automations.start", {"automation_id": automation_id, "contact_id": contact_id}, run_id)

    writes.work(workspace_id)

    assert [(run.id, run.status) for run in runs_of(contact_id)] == [(run_id, "queued")]


def test_an_exit_leaves_runs_alone_that_have_ended(workspace_id: str, contact_id: str) -> None:
    make_automation(workspace_id, {"triggers": [VIP]}, exits=[BYE])
    tag(workspace_id, contact_id, "vip")
    [run] = runs_of(contact_id)

    def end(unit: Unit) -> None:
        there = unit.get(Run, workspace_id, "id", run.id)
        run_endings.finish(unit, there, "completed", automation_name="Welcome")

    do(workspace_id, contact_id, end, adding(workspace_id, contact_id, "bye"))

    assert [run.status for run in runs_of(contact_id)] == ["completed"]


# What it costs


def test_statements_grow_neither_with_automations_nor_with_events(workspace_id: str, statements: list[str]) -> None:
    contact_ids = [make_contact(workspace_id) for _ in range(40)]
    never = {"field": "contact.locale", "is": "equals", "value": "xx"}
    make_automation(workspace_id, {"triggers": [{"event": "tag.added"}]}, reentry="every", exits=[BYE])

    def cost(name: str, size: int) -> int:
        for contact_id in contact_ids[:size]:
            accept(workspace_id, "contacts.add_tag", {"name": name}, contact_id)
        statements.clear()
        writes.work(workspace_id)
        return len(statements)

    cost("first", 40)  # reads what this process has not seen, and makes enrolments
    costs = [cost("a", 2), cost("b", 40)]
    for number in range(500):
        trigger = {"event": "tag.added", "tag": "c", "if": never} if number % 2 else VIP
        make_automation(workspace_id, {"triggers": [trigger]}, exits=[BYE])
    cost("c", 1)  # reads the five hundred
    costs += [cost("c", 2), cost("d", 40)]

    assert len(set(costs)) == 1, costs
    assert costs[0] < 25, statements
    assert one("SELECT count(*) FROM runs") == 40 + 2 + 40 + 2 + 40


def test_a_workspace_without_automations_pays_one_statement(
    workspace_id: str, contact_id: str, statements: list[str]
) -> None:
    tag(workspace_id, contact_id, "a")

    assert len([each for each in statements if "find_listeners" in each]) == 1
    assert not [each for each in statements if "runs" in each or "enrolments" in each or "find_unfollowed" in each]


def test_a_transaction_without_events_pays_nothing(workspace_id: str, contact_id: str, statements: list[str]) -> None:
    do(workspace_id, contact_id, lambda unit: None)

    assert not [each for each in statements if "find_listeners" in each]


def test_no_table_is_read_from_end_to_end(
    api: Api, contact_id: str, scanned: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        make_automation(api.workspace_id, {"triggers": [VIP]}, exits=[BYE])

    tag(api.workspace_id, contact_id, "vip", "bye")
    monkeypatch.setattr(triggers, "MOST_RUNS", 2)
    tag(api.workspace_id, contact_id, "again")
    tag(api.workspace_id, make_contact(api.workspace_id), "vip", "bye")
    apply(api.workspace_id)
    counts.fold()
    counts.runs_by_status(all_of("SELECT id FROM automations"))
    run_history.forget_old()
    api.done(api.delete(f"contacts/{contact_id}"))

    own = ("automation", "runs", "run_", "enrolments", "events", "messages", "conversations")
    assert [each for each in scanned if each[0].startswith(own)] == []
    assert one("SELECT count(*) FROM runs WHERE status = 'cancelled'") == 6

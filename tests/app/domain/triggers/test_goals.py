"""Goals: an event of the contact within some time of a run's start, also after its end; once for each run."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from app.database import rows
from app.domain.automations import counts, version_counts
from app.domain.lifecycle import merges
from app.domain.triggers import run_states, triggers
from app.domain.work.units import Unit
from app.lib import ids
from app.models.automations import Automation
from app.models.runs import Run
from tests.app.domain.lifecycle.merging import merge_at_once
from tests.app.domain.triggers.triggering import BYE, VIP, adding, do, make_contact, tag, unfollowed
from tests.app.domain.triggers.triggering import start_of as start_without_goal
from tests.automations import carry_on, make_automation, runs_of
from tests.cast import Api, accept, all_of, apply, elsewhere, in_threads, one

GOAL = {"event": "tag.added", "tag": "sold", "within_seconds": 3600}
REST = {"id": "rest", "kind": "wait", "seconds": 60}
OF_ORDER = {"field": "run.variables.order", "is": "equals", "other": "contact.custom_fields.order"}


def start_of(workspace_id: str, contact_id: str, automation_id: str, **fields: Any) -> run_states.Start:
    start = start_without_goal(workspace_id, contact_id, automation_id)
    return dataclasses.replace(start, goal=Automation.get_by_id(automation_id).goal, **fields)


def begin(workspace_id: str, contact_id: str, automation_id: str, number: int = 1, **fields: Any) -> list[Run]:
    """Begins runs of the contact, as `start` does, and carries them on."""
    start = start_of(workspace_id, contact_id, automation_id, **fields)
    do(workspace_id, contact_id, *[lambda unit: run_states.begin(unit, start)] * number)
    carry_on(workspace_id)
    return runs_of(contact_id)


def reached() -> list[bool]:
    """Which runs have reached their goal, oldest first."""
    return all_of("SELECT goal_reached_at IS NOT NULL FROM runs ORDER BY id")


def goals(workspace_id: str, automation_id: str) -> int:
    return int(version_counts.read(Automation.find(workspace_id, automation_id), 1)["goals"])


# When it is reached


def test_an_event_after_the_start_of_a_run_is_its_goal_once(workspace_id: str, contact_id: str) -> None:
    automation_id = make_automation(workspace_id, {"steps": [REST]}, goal=GOAL)
    begin(workspace_id, contact_id, automation_id)

    tag(workspace_id, contact_id, "other", "sold")
    [first] = runs_of(contact_id)
    accept(workspace_id, "contacts.remove_tag", {"name": "sold"}, contact_id)
    tag(workspace_id, contact_id, "sold")

    [run] = runs_of(contact_id)
    happened = one("SELECT created_at FROM events WHERE kind = 'tag.added' ORDER BY id OFFSET 1 LIMIT 1")
    assert (run.goal_reached_at, run.goal_until) == (first.goal_reached_at, None)
    assert (run.goal_reached_at, run.status) == (happened, "waiting")
    assert goals(workspace_id, automation_id) == 1
    counts.fold()
    assert goals(workspace_id, automation_id) == 1


def test_a_run_that_has_ended_reaches_its_goal(workspace_id: str, contact_id: str) -> None:
    automation_id = make_automation(workspace_id, goal=GOAL)
    [run] = begin(workspace_id, contact_id, automation_id)
    assert run.status == "completed"

    tag(workspace_id, contact_id, "sold")

    [run] = runs_of(contact_id)
    assert (run.goal_reached_at is not None, run.status) == (True, "completed")
    assert run_states.represent(run)["goal_reached_at"] == run.goal_reached_at
    assert goals(workspace_id, automation_id) == 1


@pytest.mark.parametrize(("seconds", "expected"), [(3590, True), (3700, False)])
def test_only_an_event_in_time_is_its_goal(workspace_id: str, contact_id: str, seconds: int, expected: bool) -> None:
    automation_id = make_automation(workspace_id, goal=GOAL)
    begin(workspace_id, contact_id, automation_id)
    rows("UPDATE runs SET goal_until = goal_until - %s", (timedelta(seconds=seconds),))

    tag(workspace_id, contact_id, "sold")

    assert reached() == [expected]
    assert goals(workspace_id, automation_id) == expected


def test_the_time_begins_with_the_run(workspace_id: str, contact_id: str) -> None:
    automation_id = make_automation(workspace_id, goal=GOAL)

    [run] = begin(workspace_id, contact_id, automation_id)

    assert run.goal_until - run.created_at == timedelta(hours=1)


def test_only_runs_of_the_contact_and_the_automation_reach_it(api: Api, workspace_id: str, contact_id: str) -> None:
    aiming, other = make_automation(workspace_id, goal=GOAL), make_automation(workspace_id, goal=GOAL | {"tag": "x"})
    stranger = make_contact(workspace_id)
    for automation_id in (aiming, other, make_automation(workspace_id)):
        begin(workspace_id, contact_id, automation_id)
        begin(workspace_id, stranger, automation_id)

    tag(workspace_id, contact_id, "sold")

    assert [run.automation_id == aiming for run in runs_of(contact_id) if run.goal_reached_at] == [True]
    assert not [run for run in runs_of(stranger) if run.goal_reached_at]


def test_the_event_that_starts_a_run_is_not_its_goal(workspace_id: str, contact_id: str) -> None:
    make_automation(workspace_id, {"triggers": [VIP], "steps": []}, reentry="every", goal=GOAL | {"tag": "vip"})
    tag(workspace_id, contact_id, "vip")
    carry_on(workspace_id)
    assert reached() == [False]

    accept(workspace_id, "contacts.remove_tag", {"name": "vip"}, contact_id)
    tag(workspace_id, contact_id, "vip")

    assert reached() == [True, False]


def test_an_event_in_the_transaction_of_the_start_is_its_goal_only_behind_it(
    workspace_id: str, contact_id: str
) -> None:
    automation_id = make_automation(workspace_id, goal=GOAL)
    start = start_of(workspace_id, contact_id, automation_id)

    def begin(unit: Unit) -> None:
        run_states.begin(unit, start)

    do(workspace_id, contact_id, begin, adding(workspace_id, contact_id, "sold"), begin)

    assert reached() == [True, False]
    assert goals(workspace_id, automation_id) == 1


def test_a_run_may_reach_its_goal_by_itself_and_end_by_it(workspace_id: str, contact_id: str) -> None:
    sell = {"id": "sell", "kind": "add_tag", "tag": "sold"}
    exits = [{"event": "tag.added", "tag": "sold"}]
    automation_id = make_automation(workspace_id, {"steps": [sell, REST]}, exits=exits, goal=GOAL)

    [run] = begin(workspace_id, contact_id, automation_id)

    assert (run.status, run.reason, run.goal_reached_at is not None) == ("cancelled", "exit", True)
    assert goals(workspace_id, automation_id) == 1


def test_the_end_of_a_run_may_be_its_goal(workspace_id: str, contact_id: str) -> None:
    automation_id = make_automation(workspace_id, goal={"event": "automation.completed", "within_seconds": 60})

    begin(workspace_id, contact_id, automation_id)

    assert reached() == [True]


# Conditions


def test_a_condition_of_the_goal_may_name_the_run_and_its_steps(workspace_id: str, contact_id: str) -> None:
    automation_id = make_automation(workspace_id, {"steps": [REST]}, goal=GOAL | {"if": OF_ORDER})
    for order in ("1", "2"):
        begin(workspace_id, contact_id, automation_id, variables={"order": order})
    accept(workspace_id, "contacts.update", {"custom_fields": {"order": "2"}}, contact_id)

    tag(workspace_id, contact_id, "sold")

    assert reached() == [False, True]


def test_a_goal_may_name_what_a_step_has_saved(workspace_id: str, contact_id: str) -> None:
    split = {"id": "half", "kind": "split", "arms": [{"name": "a", "percent": 100}, {"name": "b", "percent": 0}]}
    for arm in ("a", "b"):
        condition = {"field": "steps.half.arm", "is": "equals", "value": arm}
        automation_id = make_automation(workspace_id, {"steps": [split]}, goal=GOAL | {"if": condition})
        begin(workspace_id, contact_id, automation_id)

    tag(workspace_id, contact_id, "sold")

    assert reached() == [True, False]


# Changes of the goal


def test_a_goal_holds_for_runs_that_begin_from_then_on(api: Api, contact_id: str) -> None:
    automation_id = api.published({"id": "end", "kind": "stop"})
    start = partial(api.post, f"automations/{automation_id}/start", {"contact_id": contact_id})
    api.done(start())
    api.done(api.patch(f"automations/{automation_id}", {"goal": GOAL}))
    api.done(start())
    assert all_of("SELECT key FROM automation_listeners") == ["tag.added:sold"]

    tag(api.workspace_id, contact_id, "sold")

    assert reached() == [False, True]
    assert api.get(f"automations/{automation_id}").json["data"]["goal"] == GOAL
    assert api.get(f"automations/{automation_id}/counts").json["data"]["goals"] == 1
    api.done(api.patch(f"automations/{automation_id}", {"goal": None}))
    assert all_of("SELECT key FROM automation_listeners") == []
    assert api.get(f"automations/{automation_id}").json["data"]["goal"] is None


def test_runs_reach_the_goal_of_an_automation_that_is_no_longer_published(api: Api, contact_id: str) -> None:
    automation_id = api.published({"id": "end", "kind": "stop"}, goal=GOAL)
    api.done(api.post(f"automations/{automation_id}/start", {"contact_id": contact_id}))
    api.done(api.post(f"automations/{automation_id}/unpublish"))

    tag(api.workspace_id, contact_id, "sold")

    assert reached() == [True]


def test_runs_that_steps_start_or_that_are_replayed_have_the_goal(api: Api, contact_id: str) -> None:
    aiming = api.published({"id": "end", "kind": "stop"}, goal=GOAL)
    starting = api.published({"id": "next", "kind": "start_automation", "automation_id": aiming})
    api.done(api.post(f"automations/{starting}/start", {"contact_id": contact_id}))
    carry_on(api.workspace_id)
    [run_id] = all_of("SELECT id FROM runs WHERE automation_id = %s", aiming)
    api.done(api.post(f"runs/{run_id}/replay"))
    carry_on(api.workspace_id)

    tag(api.workspace_id, contact_id, "sold")

    assert goals(api.workspace_id, aiming) == 2
    assert api.get(f"runs/{run_id}").json["data"]["goal_reached_at"] is not None


def test_a_start_that_was_refused_has_no_goal(api: Api, contact_id: str) -> None:
    automation_id = api.published(REST, reentry="once", goal=GOAL)
    for _ in range(2):
        api.done(api.post(f"automations/{automation_id}/start", {"contact_id": contact_id}))

    tag(api.workspace_id, contact_id, "sold")

    assert reached() == [True, False]


# Merges, erasure, large cases


def test_runs_of_a_contact_that_was_merged_reach_it(
    api: Api, workspace_id: str, contact_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merges, "AT_ONCE", 1)
    automation_id = make_automation(workspace_id, {"steps": [REST]}, goal=GOAL)
    begin(workspace_id, contact_id, automation_id, 3)
    rows("UPDATE runs SET status = 'completed', finished_at = now() WHERE id = (SELECT max(id) FROM runs)")
    kept_id = make_contact(workspace_id)
    merge_at_once(api, kept_id, contact_id)
    assert len(runs_of(contact_id)) == 2

    do(workspace_id, kept_id, adding(workspace_id, kept_id, "sold"))

    assert reached() == [True] * 3
    assert goals(workspace_id, automation_id) == 3
    api.apply()
    assert [run.goal_reached_at is not None for run in runs_of(kept_id)] == [True] * 3


def test_an_erased_contact_leaves_what_was_counted(api: Api, contact_id: str) -> None:
    automation_id = api.published(REST, goal=GOAL)
    api.done(api.post(f"automations/{automation_id}/start", {"contact_id": contact_id}))
    tag(api.workspace_id, contact_id, "sold")

    api.done(api.delete(f"contacts/{contact_id}"))

    assert (goals(api.workspace_id, automation_id), reached()) == (1, [True])


def test_an_event_is_the_goal_of_the_latest_runs(
    workspace_id: str, contact_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(triggers, "MOST_COMPARED", 3)
    automation_id = make_automation(workspace_id, goal=GOAL)
    begin(workspace_id, contact_id, automation_id, 5)

    tag(workspace_id, contact_id, "sold")

    assert reached() == [False, False, True, True, True]


@pytest.mark.parametrize("most", [1, 2, 4])
def test_many_goals_are_reached_in_parts(
    workspace_id: str, contact_id: str, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(triggers, "MOST_RUNS", most)
    monkeypatch.setattr(triggers, "MOST_COMPARED", most)
    never = GOAL | {"if": {"field": "run.variables.never", "is": "exists"}}
    made = [make_automation(workspace_id, goal=goal) for goal in (GOAL, never, GOAL, never, GOAL)]
    for automation_id in made:
        begin(workspace_id, contact_id, automation_id, 2)

    tag(workspace_id, contact_id, "sold")
    apply(workspace_id)

    each = min(most, 2)
    assert [goals(workspace_id, automation_id) for automation_id in made] == [each, 0, each, 0, each]
    assert unfollowed() == 0


def test_a_run_that_another_transaction_holds_reaches_it_soon_after(workspace_id: str, contact_id: str) -> None:
    automation_id = make_automation(workspace_id, goal=GOAL)
    begin(workspace_id, contact_id, automation_id)

    with elsewhere(lambda: rows("SELECT FROM runs FOR NO KEY UPDATE")):
        tag(workspace_id, contact_id, "sold")
        assert (reached(), unfollowed()) == ([False], 1)
    apply(workspace_id)

    assert (reached(), unfollowed(), goals(workspace_id, automation_id)) == ([True], 0, 1)


def test_concurrent_events_reach_it_once(workspace_id: str, contact_id: str) -> None:
    automation_id = make_automation(workspace_id, goal={"event": "tag.added", "within_seconds": 3600})
    begin(workspace_id, contact_id, automation_id)

    in_threads([lambda: do(workspace_id, contact_id, adding(workspace_id, contact_id, ids.new("t"))) for _ in range(6)])
    apply(workspace_id)

    assert goals(workspace_id, automation_id) == 1


def test_runs_are_looked_for_only_where_there_is_a_goal_and_by_an_index(
    workspace_id: str, contact_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[Any] = []
    find = triggers._find
    monkeypatch.setattr(triggers, "_find", lambda *of: (of[0] and looked.append(of)) or find(*of))
    plain = make_automation(workspace_id, {"triggers": [VIP]}, exits=[BYE])
    tag(workspace_id, contact_id, "vip", "sold", "bye")
    assert (looked, one("SELECT count(*) FROM runs WHERE goal_until IS NOT NULL")) == ([], 0)

    automation_id = make_automation(workspace_id, goal=GOAL)
    begin(workspace_id, contact_id, automation_id)
    begin(workspace_id, contact_id, plain)
    tag(workspace_id, contact_id, "a", "b")
    assert looked == []
    accept(workspace_id, "contacts.remove_tag", {"name": "sold"}, contact_id)
    tag(workspace_id, contact_id, "sold")
    [(condition, looks, limit)] = looked
    more = """
        INSERT INTO runs
            (id, workspace_id, automation_id, version, contact_id, status, trace_id, finished_at, goal_until)
        SELECT 'run_' || n, workspace_id, automation_id, 1, CASE WHEN n %% 2 = 0 THEN contact_id ELSE 'con_' || n END,
            'completed', '', now(), CASE WHEN n %% 10 = 0 THEN now() END
        FROM generate_series(1, 20000) AS n, (SELECT * FROM runs WHERE automation_id = %s) AS run
    """
    rows(f"{more} RETURNING 1", (automation_id,))
    rows("ANALYZE runs")
    parameters = {**triggers._parameters(looks, limit), "most": 100}
    plan = "\n".join(line for (line,) in rows("EXPLAIN " + triggers._LATEST.format(condition=condition), parameters))
    assert "runs_goal" in plan
    assert "Seq Scan on runs" not in plan


def test_an_automation_keeps_listening_to_its_goal_when_it_is_published_again(api: Api) -> None:
    automation_id = api.published(REST, goal=GOAL)
    api.done(api.post(f"automations/{automation_id}/publish"))

    assert all_of("SELECT key FROM automation_listeners") == ["tag.added:sold"]

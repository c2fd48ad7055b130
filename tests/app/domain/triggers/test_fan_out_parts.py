"""Fan-out in parts: runs that are too many for the transaction of their events begin and end soon after, once each."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import partial
from typing import Any

import peewee
import pytest
from structlog.testing import capture_logs

from app.database import rows
from app.domain import writes
from app.domain.triggers import automation_listeners, fan_out_parts, run_states, triggers
from app.domain.triggers.run_states import Start
from app.domain.work.units import Unit
from app.models.runs import Run
from tests.app.domain.triggers.triggering import BYE, VIP, do, make_contact, start_of, tag, unfollowed
from tests.automations import carry_on, make_automation, runs_of
from tests.cast import Api, accept, all_of, apply, elsewhere, event_kinds, in_another_process, in_threads, one, until


@pytest.fixture
def in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Events are left to the fan-out if more than one run follows."""
    monkeypatch.setattr(triggers, "MOST_RUNS", 1)


@pytest.mark.usefixtures("in_parts")
def test_many_runs_follow_in_parts_after_the_commit(workspace_id: str, contact_id: str) -> None:
    for _ in range(5):
        make_automation(workspace_id, {"triggers": [VIP]})

    tag(workspace_id, contact_id, "vip")
    assert (runs_of(contact_id), unfollowed()) == ([], 1)
    apply(workspace_id)

    assert len(runs_of(contact_id)) == 5
    assert {run.event["data"]["tag"] for run in runs_of(contact_id)} == {"vip"}
    assert {(run.depth, run.trace_id) for run in runs_of(contact_id)} == {(1, "trace-1")}
    assert unfollowed() == 0


@pytest.mark.parametrize("looks", [1, 2, 7, 1_000])
def test_conditions_are_looked_at_in_parts(
    api: Api, contact_id: str, monkeypatch: pytest.MonkeyPatch, looks: int
) -> None:
    api.endpoint()
    monkeypatch.setattr(triggers, "MOST_LOOKS", looks)
    never = {"field": "contact.locale", "is": "exists"}
    made = [make_automation(api.workspace_id, {"triggers": [VIP, VIP | {"if": never}]}) for _ in range(3)]
    for _ in range(3):
        make_automation(api.workspace_id, {"triggers": [VIP | {"if": never}]})

    tag(api.workspace_id, contact_id, "vip")
    apply(api.workspace_id)

    assert [run.automation_id for run in runs_of(contact_id)] == made
    assert unfollowed() == 0
    assert one("SELECT count(*) FROM deliveries WHERE kind = 'tag.added'") == 1


@pytest.mark.usefixtures("in_parts")
def test_a_worker_that_dies_in_a_part_starts_and_ends_nothing_twice(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace_id = api.workspace_id
    api.endpoint()
    for number in range(7):
        kind = {"event": "tag.added"} if number % 2 else VIP
        make_automation(workspace_id, {"triggers": [kind]}, reentry="every", exits=[BYE])
    contact_ids = [make_contact(workspace_id) for _ in range(3)]
    for contact_id in contact_ids:
        for name in ("vip", "bye"):
            accept(workspace_id, "contacts.add_tag", {"name": name}, contact_id)
    writes.work(workspace_id)
    assert one("SELECT count(*) FROM runs") == 0
    real, parts = fan_out_parts._save, iter(range(1000))

    def die_now_and_then(*arguments: Any) -> None:
        if next(parts) % 2:
            raise peewee.OperationalError("killed")  # before the commit: the transaction never happened
        real(*arguments)

    monkeypatch.setattr(fan_out_parts, "_save", die_now_and_then)
    while unfollowed():
        with suppress(peewee.OperationalError):
            fan_out_parts.work(workspace_id)

    for contact_id in contact_ids:
        statuses = [run.status for run in runs_of(contact_id)]
        assert sorted(statuses) == ["cancelled"] * 7 + ["queued"] * 3
    assert event_kinds(workspace_id).count("automation.cancelled") == 3 * 7
    delivered = one("SELECT count(*) FROM deliveries")
    assert one("SELECT count(DISTINCT event_id) FROM deliveries") == delivered == one("SELECT count(*) FROM events")


@pytest.mark.usefixtures("in_parts")
def test_a_worker_that_is_killed_in_a_part_leaves_nothing_half_done(
    workspace_id: str, contact_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(5):
        make_automation(workspace_id, {"triggers": [VIP]})
    tag(workspace_id, contact_id, "vip")
    real, left = fan_out_parts._save, iter(range(2))

    def die(*arguments: Any) -> None:
        real(*arguments)
        if next(left, None) is None:
            os._exit(9)

    with monkeypatch.context() as dying:
        dying.setattr(fan_out_parts, "_save", die)
        assert in_another_process(lambda: fan_out_parts.work(workspace_id)) == 9
    assert len(runs_of(contact_id)) == 2
    rows("UPDATE events SET leased_until = now() WHERE leased_until IS NOT NULL")
    apply(workspace_id)

    assert len({run.automation_id for run in runs_of(contact_id)}) == len(runs_of(contact_id)) == 5


@pytest.mark.usefixtures("in_parts")
def test_several_workers_start_each_run_once(workspace_id: str) -> None:
    for _ in range(10):
        make_automation(workspace_id, {"triggers": [VIP]}, reentry="every")
    for number in range(5):
        accept(workspace_id, "contacts.upsert", {"external_id": str(number), "tags": ["vip"]})
    writes.work(workspace_id)

    assert in_threads([partial(apply, workspace_id)] * 4) == [None] * 4

    assert one("SELECT count(*) FROM runs") == 50
    assert one("SELECT count(DISTINCT (event_id, automation_id)) FROM runs") == 50


def test_writes_runs_and_parts_beside_each_other_start_everything_once(
    workspace_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(triggers, "MOST_RUNS", 4)
    steps = [{"id": "name", "kind": "set_field", "field": "last_name", "value": "{{ trigger.event.data.tag }}"}]
    for _ in range(3):
        make_automation(workspace_id, {"triggers": [{"event": "tag.added"}], "steps": steps}, reentry="every")
    contact_ids = [make_contact(workspace_id) for _ in range(6)]
    for number in range(72):
        accept(workspace_id, "contacts.add_tag", {"name": f"t-{number}"}, contact_ids[number % 6])
    expected = 72 * 3

    def work() -> None:
        until(lambda: apply(workspace_id) or carry_on(workspace_id) or finished() == expected, seconds=60)

    def finished() -> int:
        return int(one("SELECT count(*) FROM runs WHERE status = 'completed'"))

    before = one("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
    results = in_threads([work] * 4)

    assert results == [None] * 4
    assert one("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()") == before
    assert (
        one("SELECT count(DISTINCT (event_id, automation_id)) FROM runs")
        == one("SELECT count(*) FROM runs")
        == expected
    )
    assert unfollowed() == 0
    for contact_id in contact_ids:
        happened = [run.event_id for run in runs_of(contact_id)]
        assert happened == sorted(happened)


def test_more_runs_than_a_part_are_ended(workspace_id: str, contact_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    triggering = {"triggers": [{"event": "tag.added"}]}
    make_automation(workspace_id, triggering, reentry="every", exits=[{"event": "contact.updated"}])
    tag(workspace_id, contact_id, *(f"t-{number}" for number in range(12)))
    monkeypatch.setattr(triggers, "MOST_RUNS", 5)

    accept(workspace_id, "contacts.update", {"first_name": "Ada"}, contact_id)
    writes.work(workspace_id)
    assert {run.status for run in runs_of(contact_id)} == {"queued"}
    apply(workspace_id)

    assert [run.status for run in runs_of(contact_id)] == ["cancelled"] * 12
    assert unfollowed() == 0


def test_an_exit_that_names_the_run_is_compared_with_the_latest_and_holds_nothing_up(
    workspace_id: str, contact_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    triggering = {"triggers": [{"event": "tag.added"}]}
    is_sixth = {"field": "run.trigger.event.data.tag", "is": "equals", "value": "t-6"}
    exits = [{"event": "contact.updated", "if": is_sixth}]
    make_automation(workspace_id, triggering, reentry="every", exits=exits)
    tag(workspace_id, contact_id, *(f"t-{number}" for number in range(12)))
    for most in (5, 9):
        monkeypatch.setattr(triggers, "MOST_COMPARED", most)
        monkeypatch.setattr(triggers, "MOST_RUNS", most)

        accept(workspace_id, "contacts.update", {"first_name": f"Ada {most}"}, contact_id)
        apply(workspace_id)

        ended = [run.event["data"]["tag"] for run in runs_of(contact_id) if run.status == "cancelled"]
        assert (ended, unfollowed()) == (["t-6"] if most == 9 else [], 0)


def test_an_exit_in_parts_does_not_end_what_was_started_after_it(
    workspace_id: str, contact_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    automation_id = make_automation(workspace_id, exits=[BYE])
    start = start_of(workspace_id, contact_id, automation_id)
    do(workspace_id, contact_id, lambda unit: run_states.begin(unit, start) and None)
    with monkeypatch.context() as patched:
        patched.setattr(triggers, "MOST_LOOKS", 0)
        tag(workspace_id, contact_id, "bye")
    do(workspace_id, contact_id, lambda unit: run_states.begin(unit, start) and None)

    apply(workspace_id)

    assert [run.status for run in runs_of(contact_id)] == ["cancelled", "queued"]


def test_what_follows_from_an_event_does_not_overtake_what_follows_from_an_earlier_one(
    workspace_id: str, contact_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_automation(workspace_id, {"triggers": [VIP]}, exits=[BYE])
    other_id = make_contact(workspace_id)
    with monkeypatch.context() as patched:
        patched.setattr(triggers, "MOST_LOOKS", 0)
        tag(workspace_id, contact_id, "vip")

    tag(workspace_id, contact_id, "bye")
    assert runs_of(contact_id) == []
    tag(workspace_id, other_id, "vip")
    assert len(runs_of(other_id)) == 1
    apply(workspace_id)

    assert [run.status for run in runs_of(contact_id)] == ["cancelled"]


def test_a_part_stops_at_a_contact_that_is_held_and_goes_on_when_it_is_free(
    workspace_id: str, contact_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_automation(workspace_id, {"triggers": [VIP]})
    first, behind = make_contact(workspace_id), make_contact(workspace_id)
    with monkeypatch.context() as patched:
        patched.setattr(triggers, "MOST_LOOKS", 0)
        for each in (first, contact_id, behind):
            tag(workspace_id, each, "vip")

    with elsewhere(lambda: rows("SELECT FROM contacts WHERE id = %s FOR NO KEY UPDATE", (contact_id,))):
        fan_out_parts.work(workspace_id)
        assert [len(runs_of(each)) for each in (first, contact_id, behind)] == [1, 0, 0]
        assert unfollowed() == 2
    apply(workspace_id)

    assert [len(runs_of(each)) for each in (first, contact_id, behind)] == [1, 1, 1]
    assert unfollowed() == 0


def test_an_automation_gets_no_event_from_before_it_listened(
    workspace_id: str, contact_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = make_automation(workspace_id, {"triggers": [VIP]})
    again = make_automation(workspace_id, {"triggers": [VIP]})
    with monkeypatch.context() as patched:
        patched.setattr(triggers, "MOST_LOOKS", 0)
        tag(workspace_id, contact_id, "vip")
    make_automation(workspace_id, {"triggers": [VIP]})
    automation_listeners.listen(workspace_id, again, ())
    automation_listeners.listen(workspace_id, again, {"tag.added:vip"})
    automation_listeners.listen(workspace_id, before, {"tag.added:vip", "contact.created"})

    apply(workspace_id)

    assert [run.automation_id for run in runs_of(contact_id)] == [before]


@pytest.mark.usefixtures("in_parts")
def test_events_of_a_contact_that_was_deleted_meanwhile_start_nothing(api: Api, contact_id: str) -> None:
    for _ in range(3):
        make_automation(api.workspace_id, {"triggers": [VIP]})
    tag(api.workspace_id, contact_id, "vip")
    rows("DELETE FROM contacts WHERE id = %s", (contact_id,))

    apply(api.workspace_id)

    assert (runs_of(contact_id), unfollowed()) == ([], 0)


def test_a_trigger_that_breaks_does_not_harm_the_write_nor_other_automations(
    workspace_id: str, contact_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = make_automation(workspace_id, {"triggers": [VIP]}, name="Broken")
    working = make_automation(workspace_id, {"triggers": [VIP]})
    real = run_states.begin

    def begin(unit: Unit, start: Start) -> Run:
        if start.automation_id == broken:
            raise ValueError("broken")
        return real(unit, start)

    monkeypatch.setattr(run_states, "begin", begin)
    with capture_logs() as lines:
        tag(workspace_id, contact_id, "vip")
        apply(workspace_id)

    assert all_of("SELECT DISTINCT status FROM jobs") == ["succeeded"]
    assert [run.automation_id for run in runs_of(contact_id)] == [working]
    assert [line["event"] for line in lines if "triggers" in line["event"]] == ["triggers.left", "triggers.failed"]
    assert unfollowed() == 0


def test_listening_replaces_what_was_listened_to(workspace_id: str) -> None:
    automation_id = make_automation(workspace_id, {"triggers": [VIP]}, exits=[BYE])
    since = rows("SELECT key, since FROM automation_listeners WHERE key = 'tag.added:vip'")

    automation_listeners.listen(workspace_id, automation_id, {"tag.added:vip", "sale.recorded"})

    keys = "SELECT key FROM automation_listeners WHERE automation_id = %s ORDER BY key"
    assert all_of(keys, automation_id) == ["sale.recorded", "tag.added:vip"]
    assert rows("SELECT key, since FROM automation_listeners WHERE key = 'tag.added:vip'") == since

"""Schedules start a run for each contact that enters a segment, each exactly once for an entry."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

import pytest

from app.database import rows
from app.domain.segments import scans, schedules
from app.domain.triggers import run_states
from tests.app.domain.segments.test_schedules import begun, come, make_segment, make_vips, publish, start_all
from tests.app.domain.triggers.timing import definition, publish_again
from tests.app.domain.triggers.triggering import make_contact, tag
from tests.automations import runs_of
from tests.cast import Api, accept, all_of, apply, elsewhere, in_another_process, in_threads, one

MINUTE = timedelta(minutes=1)


@pytest.fixture
def workspace_id(api: Api) -> str:
    return api.workspace_id


def entering(segment_id: str, **fields: Any) -> dict[str, Any]:
    return {"segment_id": segment_id, "every": "entry", **fields}


def roll() -> list[str]:
    return all_of("SELECT contact_id FROM segment_contacts ORDER BY contact_id")


def untag(workspace_id: str, contact_id: str) -> None:
    accept(workspace_id, "contacts.remove_tag", {"name": "vip"}, contact_id)
    apply(workspace_id)


def look_again() -> None:
    """Looks at the segment once more."""
    come()
    start_all()


def test_a_run_begins_for_each_contact_that_enters_and_none_for_those_that_were_there(api: Api) -> None:
    there, enters = *make_vips(api, 1), make_contact(api.workspace_id)
    automation_id = publish(api, entering(make_segment(api)))

    start_all()
    assert (begun(), roll()) == ([], [there])
    tag(api.workspace_id, enters, "vip")
    [made] = make_vips(api, 1)
    look_again()
    look_again()

    assert begun() == roll()[1:] == [enters, made]
    [run] = runs_of(enters)
    assert (run.automation_id, run.version, run.status, run.depth) == (automation_id, 1, "queued", 1)
    assert (run.event["id"], run.event["kind"]) == (None, "segment.entered")
    assert run.event["data"]["contact"]["tags"] == ["vip"]


def test_who_leaves_and_comes_back_enters_again(api: Api) -> None:
    publish(api, entering(make_segment(api)))
    start_all()
    [contact_id] = make_vips(api, 1)
    look_again()

    untag(api.workspace_id, contact_id)
    look_again()
    assert (begun(), roll()) == ([contact_id], [])
    tag(api.workspace_id, contact_id, "vip")
    look_again()

    assert begun() == [contact_id] * 2


def test_a_contact_that_is_deleted_is_off_the_roll(api: Api) -> None:
    [contact_id] = make_vips(api, 1)
    publish(api, entering(make_segment(api)))
    start_all()
    assert roll() == [contact_id]

    accept(api.workspace_id, "contacts.delete", {}, contact_id)
    apply(api.workspace_id)
    look_again()

    assert roll() == []


def test_only_if_the_condition_of_the_trigger_holds_then(api: Api) -> None:
    publish(api, entering(make_segment(api), **{"if": {"field": "contact.first_name", "is": "equals", "value": "Ada"}}))
    start_all()
    ada, _ = (make_contact(api.workspace_id, tags=["vip"], first_name=name) for name in ("Ada", "Bob"))

    look_again()

    assert begun() == [ada]
    assert len(roll()) == 2


def test_time_alone_lets_contacts_enter(api: Api) -> None:
    contact_id = make_contact(api.workspace_id)
    publish(api, entering(make_segment(api, {"field": "contact.created_at", "is": "less_than", "days_ago": 30})))
    start_all()
    assert roll() == []

    rows("UPDATE contacts SET created_at = created_at - interval '31 days' RETURNING 1")
    look_again()

    assert begun() == [contact_id]


@pytest.mark.parametrize(
    ("took", "rest"),
    [(timedelta(0), 0.5 * MINUTE), (timedelta(seconds=3), MINUTE), (timedelta(hours=1), 5 * MINUTE)],
    ids=str,
)
def test_it_rests_by_how_long_it_has_taken(api: Api, took: timedelta, rest: timedelta) -> None:
    publish(api, entering(make_segment(api)))
    rows("UPDATE schedules SET next_at = now() - %s, began_at = now() - %s RETURNING 1", (took, took))

    start_all()

    assert abs(one("SELECT next_at - now() FROM schedules") - rest) < timedelta(seconds=5)


def test_a_time_zone_of_the_workspace_does_not_move_it(api: Api) -> None:
    publish(api, entering(make_segment(api)))
    start_all()
    before = one("SELECT next_at FROM schedules")

    api.done(api.patch(f"/api/v1/workspaces/{api.workspace_id}", {"timezone": "Asia/Tokyo"}))

    assert one("SELECT next_at FROM schedules") == before


def test_two_schedulers_and_one_that_dies_begin_each_run_once(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedules, "PART", 3)
    monkeypatch.setattr(scans, "_FIRST_ROWS", 4)
    there = make_vips(api, 2)
    publish(api, entering(make_segment(api)))
    start_all()
    vips = make_vips(api, 20)
    come()

    def die() -> None:
        begin, seen = run_states.begin, []

        def begin_and_die(unit: Any, start: Any) -> None:
            begin(unit, start)
            seen.append(start)
            if len(seen) == 8:
                unit.write()
                os._exit(9)

        monkeypatch.setattr(run_states, "begin", begin_and_die)
        start_all()

    assert in_another_process(die) == 9
    assert 0 < len(begun()) < len(vips)
    assert roll() == there + begun()

    in_threads([start_all] * 3)
    start_all()
    assert begun() == vips
    assert roll() == there + vips


def test_a_contact_that_is_held_is_waited_for(api: Api) -> None:
    publish(api, entering(make_segment(api)))
    start_all()
    vips = make_vips(api, 3)
    come()

    with elsewhere(lambda: rows("SELECT 1 FROM contacts WHERE id = %s FOR UPDATE", (vips[1],))):
        start_all()
        assert begun() == roll() == vips[:1]

    start_all()
    assert begun() == vips


def test_who_enters_during_a_pause_and_stays_gets_a_run_afterwards(api: Api) -> None:
    automation_id = publish(api, entering(make_segment(api)))
    start_all()
    api.done(api.post(f"automations/{automation_id}/pause"))
    stays, leaves = make_vips(api, 2)
    look_again()
    untag(api.workspace_id, leaves)
    assert begun() == []

    api.done(api.post(f"automations/{automation_id}/resume"))
    start_all()

    assert begun() == [stays]


def test_a_version_with_the_same_trigger_keeps_the_roll(api: Api) -> None:
    trigger = entering(make_segment(api))
    automation_id = publish(api, trigger)
    start_all()
    [contact_id] = make_vips(api, 1)

    publish_again(api, automation_id, trigger)
    look_again()

    assert begun() == [contact_id]


def test_the_roll_of_an_unpublished_automation_is_dropped_and_made_anew(api: Api) -> None:
    trigger = entering(make_segment(api))
    automation_id = publish(api, trigger)
    there = make_vips(api, 2)
    start_all()
    assert schedules.drop_left() == 0
    api.done(api.post(f"automations/{automation_id}/unpublish"))

    assert (schedules.drop_left(), roll()) == (2, [])
    there += make_vips(api, 1)
    publish_again(api, automation_id, trigger)
    start_all()
    look_again()

    assert (begun(), roll()) == ([], there)


def test_an_old_roll_is_corrected_without_starting_runs(api: Api) -> None:
    trigger = entering(make_segment(api))
    leaves, stays = make_vips(api, 2)
    automation_id = publish(api, trigger)
    start_all()
    api.done(api.post(f"automations/{automation_id}/unpublish"))
    untag(api.workspace_id, leaves)
    comes = make_vips(api, 1)

    publish_again(api, automation_id, trigger)
    start_all()
    look_again()

    assert (begun(), roll()) == ([], [stays, *comes])


def test_a_roll_is_not_dropped_while_the_automation_is_published_again(api: Api) -> None:
    trigger = entering(make_segment(api))
    make_vips(api, 1)
    automation_id = publish(api, trigger)
    start_all()
    api.done(api.post(f"automations/{automation_id}/unpublish"))

    with elsewhere(lambda: rows("SELECT 1 FROM automations WHERE id = %s FOR NO KEY UPDATE", (automation_id,))):
        assert schedules.drop_left() == 0
    assert len(roll()) == 1
    assert schedules.drop_left() == 1


def test_deleting_the_automation_removes_its_roll(api: Api) -> None:
    make_vips(api, 2)
    automation_id = publish(api, entering(make_segment(api)))
    start_all()

    api.done(api.delete(f"automations/{automation_id}"))

    assert roll() == []


def test_automations_of_one_segment_have_rolls_of_their_own(api: Api, others: Api) -> None:
    segment_id = make_segment(api)
    publish(api, entering(segment_id))
    publish(others, entering(make_segment(others)))
    start_all()
    [contact_id] = make_vips(api, 1)
    publish(api, entering(segment_id))

    look_again()
    look_again()

    assert begun() == [contact_id]
    assert roll() == [contact_id] * 2


def test_it_needs_a_segment_of_the_workspace_and_keeps_it(api: Api, others: Api) -> None:
    segment_id = make_segment(api)
    automation_id = publish(api, entering(segment_id))
    foreign = others.published()
    others.done(others.patch(f"automations/{foreign}", {"definition": definition(entering(segment_id))}))

    refused = api.done(api.delete(f"segments/{segment_id}"))

    assert refused["problem"]["conflicting_automation_id"] == automation_id
    assert others.done(others.post(f"automations/{foreign}/publish"))["status"] == "failed"

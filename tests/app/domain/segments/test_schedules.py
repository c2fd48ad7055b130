"""Schedules start a run for each contact of a segment, each exactly once for an occurrence."""

from __future__ import annotations

import os
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from app.database import rows
from app.domain.automations import executions
from app.domain.segments import scans, schedules
from app.domain.triggers import run_states
from app.lib import ids
from tests.app.domain.triggers.timing import definition, publish_again
from tests.app.domain.triggers.triggering import make_contact, tag
from tests.automations import carry_on, deltas, runs_of
from tests.cast import Api, all_of, elsewhere, in_another_process, in_threads, indexes_used, one

VIP = {"field": "contact.tags", "is": "contains", "value": "vip"}


@pytest.fixture
def workspace_id(api: Api) -> str:
    return api.workspace_id


def make_segment(api: Api, condition: dict[str, Any] | None = None) -> str:
    body = {"name": "Regulars", "filter": condition or VIP}
    return str(api.done(api.post("segments", body))["resource"]["id"])


def daily(segment_id: str, **fields: Any) -> dict[str, Any]:
    return {"segment_id": segment_id, "every": "day", "at": "09:00", **fields}


def publish(api: Api, *triggers: dict[str, Any], **fields: Any) -> str:
    return api.published(definition=definition(*triggers), **{"reentry": "every"} | fields)


def make_vips(api: Api, number: int) -> list[str]:
    return [make_contact(api.workspace_id, tags=["vip"]) for _ in range(number)]


def pass_time(**units: float) -> None:
    """Brings every time closer by this much, given as for `timedelta`."""
    rows("UPDATE schedules SET next_at = next_at - %s RETURNING 1", (timedelta(**units),))


def come() -> None:
    """The time of all schedules comes."""
    rows("UPDATE schedules SET next_at = now() RETURNING 1")


def start_all() -> None:
    while schedules.start_some():
        pass


def begun() -> list[str]:
    return all_of("SELECT contact_id FROM runs ORDER BY contact_id")


def coming() -> list[tuple[bool, bool, str]]:
    """Of each schedule: whether it is due, whether it is under way, and how far it has got."""
    found = rows("SELECT next_at <= now(), began_at IS NOT NULL, reached FROM schedules ORDER BY key")
    return [(is_due, is_under_way, reached) for is_due, is_under_way, reached in found]


def test_a_run_begins_for_each_contact_of_the_segment(api: Api) -> None:
    vips = make_vips(api, 3)
    make_contact(api.workspace_id)
    automation_id = publish(api, daily(make_segment(api)))

    start_all()
    assert begun() == []
    come()
    start_all()

    assert begun() == vips
    [run] = runs_of(vips[0])
    assert (run.automation_id, run.version, run.status, run.depth) == (automation_id, 1, "queued", 1)
    assert (run.event_id, run.job_id, run.event["id"], run.event["kind"]) == (None, None, None, "contact.scheduled")
    assert run.event["data"]["contact"]["tags"] == ["vip"]
    assert deltas() == {(automation_id, "queued"): 3}
    carry_on(api.workspace_id)
    assert [run.status for run in runs_of(vips[0])] == ["completed"]


def test_it_comes_again_the_next_day_and_not_before(api: Api) -> None:
    [contact_id] = make_vips(api, 1)
    publish(api, daily(make_segment(api)))
    come()

    start_all()
    start_all()

    assert begun() == [contact_id]
    assert coming() == [(False, False, "")]
    assert timedelta(0) < one("SELECT next_at - now() FROM schedules") <= timedelta(days=1, hours=1)
    come()
    start_all()
    assert begun() == [contact_id] * 2


def test_what_was_missed_runs_once(api: Api) -> None:
    [contact_id] = make_vips(api, 1)
    publish(api, daily(make_segment(api)))
    pass_time(days=9)

    start_all()

    assert begun() == [contact_id]
    assert coming() == [(False, False, "")]


def test_an_occurrence_that_lasts_for_longer_than_a_day_is_followed_by_one(api: Api) -> None:
    [contact_id] = make_vips(api, 1)
    publish(api, daily(make_segment(api)))
    rows("UPDATE schedules SET next_at = now() - interval '3 days', began_at = now() - interval '3 days' RETURNING 1")
    rows("UPDATE contacts SET created_at = now() - interval '4 days' RETURNING 1")

    start_all()

    assert begun() == [contact_id] * 2
    assert coming() == [(False, False, "")]


def test_contacts_that_come_later_wait_for_the_next_occurrence(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedules, "PART", 1)
    monkeypatch.setattr(schedules, "SLICE_SECONDS", 0)
    vips = make_vips(api, 2)
    publish(api, daily(make_segment(api)))
    come()
    schedules.start_some()

    make_vips(api, 1)
    start_all()

    assert begun() == vips


def test_who_leaves_the_segment_before_its_turn_gets_no_run(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedules, "SLICE_SECONDS", 0)
    vips = make_vips(api, 2)
    publish(api, daily(make_segment(api)))
    come()
    read = scans.further_fields

    def change(contact_ids: list[str]) -> Any:
        rows("UPDATE contacts SET tags = '{}' WHERE id = %s RETURNING 1", (vips[1],))
        return read(contact_ids)

    monkeypatch.setattr(scans, "further_fields", change)
    start_all()

    assert begun() == vips[:1]


@pytest.mark.parametrize(("condition", "runs"), [({"not": VIP}, 0), (VIP, 1)])
def test_the_condition_of_the_trigger_is_judged_too(api: Api, condition: dict[str, Any], runs: int) -> None:
    make_vips(api, 1)
    publish(api, daily(make_segment(api)) | {"if": condition})
    come()

    start_all()

    assert len(begun()) == runs


@pytest.mark.parametrize(("reentry", "runs"), [(None, 1), ("every", 2), ("once", 1)])
def test_reentry_decides_about_a_second_run(api: Api, reentry: str | None, runs: int) -> None:
    [contact_id] = make_vips(api, 1)
    automation_id = publish(api, daily(make_segment(api)), reentry=reentry)
    for _ in range(2):
        come()
        start_all()

    assert begun() == [contact_id] * runs
    assert deltas().get((automation_id, "refused:reentry"), 0) == 2 - runs


def test_two_schedulers_and_one_that_dies_begin_each_run_once(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedules, "PART", 3)
    vips = make_vips(api, 20)
    publish(api, daily(make_segment(api)))
    come()

    def die() -> None:
        begin, seen = run_states.begin, []

        def begin_and_die(unit: Any, start: Any) -> None:
            begin(unit, start)
            seen.append(start)
            if len(seen) == 8:  # in the third part
                unit.write()
                os._exit(9)

        monkeypatch.setattr(run_states, "begin", begin_and_die)
        start_all()

    assert in_another_process(die) == 9
    assert begun() == vips[:6]

    in_threads([start_all] * 3)
    start_all()
    assert begun() == vips
    assert coming() == [(False, False, "")]


def test_a_scheduler_that_dies_before_it_notes_the_end_begins_nothing_again(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    vips = make_vips(api, 2)
    publish(api, daily(make_segment(api)))
    come()

    def die() -> None:
        monkeypatch.setattr(schedules, "_end", lambda schedule: os._exit(9))
        start_all()

    assert in_another_process(die) == 9
    assert begun() == []

    start_all()
    assert begun() == vips


def test_a_contact_that_is_held_is_waited_for(api: Api) -> None:
    vips = make_vips(api, 3)
    publish(api, daily(make_segment(api)))
    come()

    with elsewhere(lambda: rows("SELECT 1 FROM contacts WHERE id = %s FOR UPDATE", (vips[1],))):
        start_all()
        assert begun() == vips[:1]
        assert coming() == [(True, True, vips[0])]

    start_all()
    assert begun() == vips


def test_workspaces_share_a_slice(api: Api, others: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedules, "PART", 1)
    parts: list[str] = []
    begin = run_states.begin
    monkeypatch.setattr(run_states, "begin", lambda unit, start: (parts.append(start.workspace_id), begin(unit, start)))
    for each in (api, others):
        make_vips(each, 3)
        publish(each, daily(make_segment(each)))
    come()

    start_all()

    assert [set(parts[n : n + 2]) for n in (0, 2, 4)] == [{api.workspace_id, others.workspace_id}] * 3


def test_a_part_that_finds_nobody_goes_on(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_FIRST_ROWS", "_LEAST_ROWS"):
        monkeypatch.setattr(scans, name, 2)
    for _ in range(5):
        make_contact(api.workspace_id)
    vips = make_vips(api, 1)
    unindexed = make_segment(api, {"any": [VIP]})
    publish(api, daily(unindexed))
    come()

    start_all()

    assert begun() == vips


def test_nothing_of_another_workspace_is_started(api: Api, others: Api) -> None:
    make_vips(others, 1)
    publish(api, daily(make_segment(api)))
    come()

    start_all()

    assert begun() == []


def test_a_run_that_cannot_begin_leaves_the_others_alone(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    vips = make_vips(api, 3)
    publish(api, daily(make_segment(api)))
    come()
    begin = run_states.begin

    def fail(unit: Any, start: Any) -> None:
        if start.contact_id == vips[1]:
            raise ValueError("A fault of ours")
        begin(unit, start)

    monkeypatch.setattr(run_states, "begin", fail)
    with capture_logs() as logs:
        start_all()

    assert begun() == [vips[0], vips[2]]
    assert [each["contact"] for each in logs if each["event"] == "schedule.failed"] == [vips[1]]


def test_a_pause_holds_what_is_under_way_and_what_comes(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedules, "PART", 1)
    monkeypatch.setattr(schedules, "SLICE_SECONDS", 0)
    vips = make_vips(api, 2)
    automation_id = publish(api, daily(make_segment(api)))
    come()
    schedules.start_some()
    api.done(api.post(f"automations/{automation_id}/pause"))

    start_all()
    executions.work(api.workspace_id)
    assert begun() == vips[:1]
    assert [run.status for run in runs_of(vips[0])] == ["held"]

    api.done(api.post(f"automations/{automation_id}/resume"))
    start_all()
    assert begun() == vips


@pytest.mark.parametrize("action", ["unpublish", "delete"])
def test_unpublishing_and_deleting_end_it(api: Api, monkeypatch: pytest.MonkeyPatch, action: str) -> None:
    monkeypatch.setattr(schedules, "PART", 1)
    monkeypatch.setattr(schedules, "SLICE_SECONDS", 0)
    make_vips(api, 2)
    automation_id = publish(api, daily(make_segment(api)))
    come()
    schedules.start_some()

    done = api.delete(f"automations/{automation_id}") if action == "delete" else None
    api.done(done or api.post(f"automations/{automation_id}/unpublish"))
    start_all()

    assert len(begun()) == 1
    assert coming() == []


def test_a_version_with_another_schedule_begins_anew(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedules, "PART", 1)
    monkeypatch.setattr(schedules, "SLICE_SECONDS", 0)
    make_vips(api, 2)
    segment_id = make_segment(api)
    automation_id = publish(api, daily(segment_id))
    come()
    schedules.start_some()

    publish_again(api, automation_id, daily(segment_id, at="10:00"))
    start_all()

    assert len(begun()) == 1
    assert coming() == [(False, False, "")]


def test_a_version_with_the_same_schedule_goes_on(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedules, "PART", 1)
    monkeypatch.setattr(schedules, "SLICE_SECONDS", 0)
    vips = make_vips(api, 2)
    segment_id = make_segment(api)
    automation_id = publish(api, daily(segment_id))
    come()
    schedules.start_some()

    publish_again(api, automation_id, daily(segment_id) | {"if": VIP})
    start_all()

    assert begun() == vips
    assert [run.version for run in runs_of(vips[1])] == [2]


def test_a_change_of_the_filter_counts_at_once(api: Api) -> None:
    make_vips(api, 1)
    other_id = make_contact(api.workspace_id)
    segment_id = make_segment(api)
    publish(api, daily(segment_id))

    api.done(api.patch(f"segments/{segment_id}", {"filter": {"not": VIP}}))
    come()
    start_all()

    assert begun() == [other_id]


def test_it_comes_by_the_clock_of_the_workspace_or_its_own(api: Api) -> None:
    segment_id = make_segment(api)
    publish(api, daily(segment_id), daily(segment_id, timezone="Asia/Tokyo"))

    def hours() -> set[int]:
        return {at.hour for at in all_of("SELECT next_at FROM schedules")}

    assert hours() == {9, 0}
    api.done(api.patch(f"/api/v1/workspaces/{api.workspace_id}", {"timezone": "Asia/Kolkata"}))
    assert hours() == {3, 0}


def test_a_change_of_the_time_zone_delays_nothing_that_is_due(api: Api) -> None:
    make_vips(api, 1)
    publish(api, daily(make_segment(api)))
    come()

    api.done(api.patch(f"/api/v1/workspaces/{api.workspace_id}", {"timezone": "Asia/Kolkata"}))

    assert coming() == [(True, False, "")]


def test_an_unknown_segment_cannot_be_published(api: Api, others: Api) -> None:
    for segment_id in (ids.new("seg"), make_segment(others)):
        automation = api.automation(definition=definition(daily(segment_id)))

        job = api.done(api.post(f"automations/{automation['id']}/publish"))

        assert job["status"] == "failed"
        assert [each["pointer"] for each in job["problem"]["errors"]] == ["/definition/triggers/0/segment_id"]


def test_a_segment_that_is_used_is_not_deleted(api: Api) -> None:
    segment_id = make_segment(api)
    automation_id = publish(api, daily(segment_id))

    job = api.done(api.delete(f"segments/{segment_id}"))

    assert (job["status"], job["problem"]["status"]) == ("failed", 409)
    assert job["problem"]["conflicting_automation_id"] == automation_id
    api.done(api.post(f"automations/{automation_id}/unpublish"))
    assert api.done(api.delete(f"segments/{segment_id}"))["status"] == "succeeded"


def test_schedules_count_as_triggers_by_time(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.domain.automations.publications.MOST_TIMED", 2)
    segment_id = make_segment(api)
    publish(api, daily(segment_id), daily(segment_id, at="10:00"))
    automation = api.automation(definition=definition(daily(segment_id)))

    job = api.done(api.post(f"automations/{automation['id']}/publish"))

    assert (job["status"], job["problem"]["status"]) == ("failed", 409)


def test_a_contact_that_is_deleted_is_left_out(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedules, "SLICE_SECONDS", 0)
    vips = make_vips(api, 2)
    tag(api.workspace_id, vips[0], "other")
    publish(api, daily(make_segment(api)))
    come()
    read = scans.further_fields

    def delete(contact_ids: list[str]) -> Any:
        rows("DELETE FROM contacts WHERE id = %s RETURNING 1", (vips[1],))
        return read(contact_ids)

    monkeypatch.setattr(scans, "further_fields", delete)
    start_all()

    assert begun() == vips[:1]


def test_what_is_due_is_found_by_index(workspace_id: str) -> None:
    rows(
        "INSERT INTO schedules (automation_id, key, workspace_id, segment_id, next_at, reached)"
        " SELECT 'aut_' || n, 'a', %s, 'seg_1', now() + n * interval '1 h', '' FROM generate_series(1, 5000) AS n"
        " RETURNING 1",
        (workspace_id,),
    )
    rows("ANALYZE schedules")
    for query in (schedules._DUE, f"SELECT {schedules.IS_ANY_DUE}"):
        assert "schedules_next" in indexes_used(SimpleNamespace(sql=lambda query=query: (query, ())))

"""Counts of a version: exact by status and by step, for all time and by when runs were created, at a bounded cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from app import database, mailbox
from app.database import rows
from app.domain.automations import counts, executions
from app.domain.retention import delete_old
from app.domain.triggers import run_states
from app.lib import clock, ids
from app.models.automations import AutomationDelta
from app.models.runs import Run
from tests.automations import carry_on
from tests.cast import Api, all_of, elsewhere, in_threads, one

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
MARK = {"id": "mark", "kind": "add_tag", "tag": "seen"}
PAUSE = {"id": "pause", "kind": "wait", "seconds": 60}
LATER = {"id": "later", "kind": "add_tag", "tag": "later"}
BAD = {"id": "bad", "kind": "add_tag", "tag": "{{ contact.last_name }}"}
UNKNOWN = "aut_01kaj5bd40e6rr3f5y2kq0w9xz"


def begin(api: Api, automation_id: str, contact_id: str) -> str:
    job = api.done(api.post(f"automations/{automation_id}/start", {"contact_id": contact_id}))
    return str(job["resource"]["id"])


def begin_some(api: Api, automation_id: str, number: int) -> list[str]:
    """Creates that many contacts, begins a run for each and carries them on; returns the contacts."""
    contacts = [str(api.contact(external_id=ids.new("x"))["id"]) for _ in range(number)]
    for contact_id in contacts:
        begin(api, automation_id, contact_id)
    carry_on(api.workspace_id)
    return contacts


def read(api: Api, automation_id: str, **query: Any) -> dict[str, Any]:
    response = api.get(f"automations/{automation_id}/counts", query_string=query)
    assert response.status_code == 200, response.json
    return dict(response.json["data"])


def read_twice(api: Api, automation_id: str, **query: Any) -> dict[str, Any]:
    """The counts, which are the same before and after they are added up."""
    before = read(api, automation_id, **query)
    while counts.fold(limit=3):
        assert read(api, automation_id, **query) == before
    return before


def without_zeros(counted: Mapping[str, Any]) -> dict[str, Any]:
    return {key: amount for key, amount in counted.items() if amount}


def wake_all() -> None:
    rows("UPDATE runs SET due_at = now(), resume_at = NULL WHERE finished_at IS NULL")


def count(automation_id: str, at: datetime, key: str = "completed", amount: int = 1, step: str = "") -> None:
    """Counts of version 1, as if a run created in that hour had been there."""
    of = {"workspace_id": "ws", "automation_id": automation_id, "version": 1, "step": step}
    AutomationDelta.insert(id=ids.new("dlt"), **of, key=key, hour=at, amount=amount).execute()


def this_hour() -> datetime:
    return clock.now().replace(minute=0, second=0, microsecond=0)


def midnight(days_ago: int) -> datetime:
    return clock.now().replace(hour=0, minute=0, second=0, microsecond=0) - days_ago * DAY


# What is counted


def test_a_version_is_counted_by_status_and_step(api: Api) -> None:
    automation_id = api.published(MARK, PAUSE, LATER)
    begin_some(api, automation_id, 3)
    rows("UPDATE runs SET due_at = now(), resume_at = NULL WHERE id = (SELECT min(id) FROM runs)")
    carry_on(api.workspace_id)

    found = read_twice(api, automation_id)

    assert found["version"] == 1
    assert without_zeros(found["runs"]) == {"waiting": 2, "completed": 1}
    assert found["steps"] == {
        "mark": {"entered": 3, "left": 3, "waiting": 0, "failed": 0},
        "pause": {"entered": 3, "left": 1, "waiting": 2, "failed": 0},
        "later": {"entered": 1, "left": 1, "waiting": 0, "failed": 0},
    }


def test_a_step_at_which_a_run_fails_or_stops_is_counted(api: Api) -> None:
    failing = api.published(MARK, BAD, LATER)
    stopping = api.published({"id": "end", "kind": "stop"}, LATER)
    begin_some(api, failing, 2)
    begin_some(api, stopping, 1)

    steps = read_twice(api, failing)["steps"]
    assert without_zeros(steps["bad"]) == {"entered": 2, "failed": 2}
    assert without_zeros(steps["later"]) == {}
    assert without_zeros(read(api, failing)["runs"]) == {"failed": 2}
    assert without_zeros(read(api, stopping)["steps"]["end"]) == {"entered": 1, "left": 1}


def test_arms_are_counted_also_those_that_no_run_took(api: Api) -> None:
    split = {"id": "split", "kind": "split", "arms": [{"name": "a", "percent": 100}, {"name": "b", "percent": 0}]}
    branch = {"id": "branch", "kind": "branch", "if": {"field": "contact.tags", "is": "exists"}, "then": [MARK]}
    rounds = {"id": "rounds", "kind": "repeat", "times": 3, "steps": [LATER]}
    automation_id = api.published(split, branch, rounds)
    begin_some(api, automation_id, 2)

    steps = read_twice(api, automation_id)["steps"]

    assert steps["split"]["arms"] == {"a": 2, "b": 0}
    assert steps["branch"]["arms"] == {"then": 0, "else": 2}
    assert steps["rounds"] == {"entered": 8, "left": 8, "waiting": 0, "failed": 0, "arms": {"steps": 6}}
    assert "arms" not in steps["mark"]


def test_a_step_that_begins_anew_after_a_hold_is_entered_once(api: Api) -> None:
    automation_id = api.published(PAUSE, MARK)
    begin_some(api, automation_id, 1)
    rows("UPDATE runs SET waits_for = 'quiet_hours', due_at = now(), resume_at = NULL")

    carry_on(api.workspace_id)
    assert without_zeros(read_twice(api, automation_id)["steps"]["pause"]) == {"entered": 1, "waiting": 1}

    wake_all()
    carry_on(api.workspace_id)
    assert without_zeros(read_twice(api, automation_id)["steps"]["pause"]) == {"entered": 1, "left": 1}


def test_a_run_that_a_pause_holds_stays_where_it_is(api: Api) -> None:
    automation_id = api.published(PAUSE, MARK)
    begin_some(api, automation_id, 1)
    api.done(api.post(f"automations/{automation_id}/pause"))
    wake_all()
    carry_on(api.workspace_id)

    found = read_twice(api, automation_id)

    assert without_zeros(found["runs"]) == {"held": 1}
    assert without_zeros(found["steps"]["pause"]) == {"entered": 1, "waiting": 1}


def test_versions_are_counted_apart(api: Api) -> None:
    automation_id = api.published(MARK)
    begin_some(api, automation_id, 2)
    api.done(api.patch(f"automations/{automation_id}", {"definition": {"triggers": [], "steps": [MARK, LATER]}}))
    api.done(api.post(f"automations/{automation_id}/publish"))
    begin_some(api, automation_id, 1)

    first, second = read_twice(api, automation_id, version=1), read_twice(api, automation_id)

    assert (first["version"], first["runs"]["completed"], list(first["steps"])) == (1, 2, ["mark"])
    assert (second["version"], second["runs"]["completed"]) == (2, 1)
    assert second["steps"]["mark"]["entered"] == 1
    shown = api.get(f"automations/{automation_id}").json["data"]["runs"]
    assert shown["completed"] == 3


def test_a_draft_counts_nothing_and_an_unpublished_automation_its_latest_version(api: Api) -> None:
    draft = api.automation(MARK)["id"]
    automation_id = api.published(MARK)
    begin_some(api, automation_id, 1)
    api.done(api.post(f"automations/{automation_id}/unpublish"))

    empty = read(api, draft)
    assert (empty["version"], set(empty["runs"].values()), empty["steps"]) == (None, {0}, {})
    assert read(api, automation_id)["runs"]["completed"] == 1


def test_a_refused_start_is_a_cancelled_run_of_its_version(api: Api) -> None:
    automation_id = api.published(MARK, reentry="once")
    [contact_id] = begin_some(api, automation_id, 1)
    api.post(f"automations/{automation_id}/start", {"contact_id": contact_id})
    api.apply()

    assert without_zeros(read_twice(api, automation_id)["runs"]) == {"completed": 1, "cancelled": 1}


# Exactness


def test_cancelled_merged_and_erased_runs_stop_waiting(api: Api) -> None:
    automation_id = api.published(PAUSE, MARK)
    _, of_cancelled, merged, kept, erased = begin_some(api, automation_id, 5)
    [run_id] = all_of("SELECT id FROM runs WHERE contact_id = %s", of_cancelled)
    api.done(api.post(f"runs/{run_id}/cancel"))
    api.done(api.post(f"contacts/{kept}/merge", {"contact_id": merged}))
    api.done(api.delete(f"contacts/{erased}"))

    found = read_twice(api, automation_id)
    by_status = dict(rows("SELECT status, count(*)::int FROM runs GROUP BY status"))
    assert without_zeros(found["runs"]) == by_status
    waiting = one("SELECT count(*) FROM runs WHERE waits_for IS NOT NULL")
    assert without_zeros(found["steps"]["pause"]) == {"entered": 5, "waiting": waiting}

    wake_all()
    carry_on(api.workspace_id)
    found = read_twice(api, automation_id)
    assert found["steps"]["pause"] == {"entered": 5, "left": waiting, "waiting": 0, "failed": 0}
    assert found["runs"] == {**dict.fromkeys(found["runs"], 0), "completed": waiting, "cancelled": 5 - waiting}


class Killed(BaseException):
    """What a worker dies of."""


def test_a_batch_that_is_done_again_after_its_worker_died_is_counted_once(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    automation_id = api.published(MARK, PAUSE, LATER)
    for _ in range(3):
        begin(api, automation_id, str(api.contact(external_id=ids.new("x"))["id"]))

    for statements in range(40):  # a worker dies after each number of statements that it gets to
        real, left = database.Database._execute, [statements]

        def execute(self: Any, sql: Any, parameters: Any, real: Any = real, left: list[int] = left) -> Any:
            if not left[0]:
                raise Killed
            left[0] -= 1
            return real(self, sql, parameters)

        with pytest.MonkeyPatch.context() as patch, suppress(Killed):
            patch.setattr(database.Database, "_execute", execute)
            executions.work(api.workspace_id)
        rows("UPDATE runs SET leased_until = NULL, deaths = 0")
    carry_on(api.workspace_id)

    found = read_twice(api, automation_id)
    assert without_zeros(found["runs"]) == {"waiting": 3}
    assert without_zeros(found["steps"]["mark"]) == {"entered": 3, "left": 3}
    assert without_zeros(found["steps"]["pause"]) == {"entered": 3, "waiting": 3}


def test_a_run_that_workers_die_of_fails_at_the_step_that_it_had_reached(api: Api) -> None:
    waiting = api.published(PAUSE)
    begin_some(api, waiting, 1)
    rows("UPDATE runs SET deaths = 99, due_at = now(), resume_at = NULL")
    carry_on(api.workspace_id)
    assert without_zeros(read_twice(api, waiting)["steps"]["pause"]) == {"entered": 1, "failed": 1}

    reached = api.published(MARK, LATER)
    begin(api, reached, str(api.contact(external_id="y")["id"]))
    rows("UPDATE runs SET deaths = 99, step = 'later', started_at = now() WHERE automation_id = %s", (reached,))
    carry_on(api.workspace_id)
    steps = read_twice(api, reached)["steps"]
    assert (without_zeros(steps["mark"]), without_zeros(steps["later"])) == ({}, {"entered": 1, "failed": 1})


def test_a_batch_adds_no_statement_and_few_rows(api: Api) -> None:
    automation_id = api.published(MARK, LATER)
    counts.fold()
    for _ in range(20):
        begin(api, automation_id, str(api.contact(external_id=ids.new("x"))["id"]))
    counts.fold()
    executed: list[str] = []
    execute = database.database._execute
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database.database, "_execute", lambda sql, *rest: executed.append(sql) or execute(sql, *rest))
        executions._work_on(mailbox.claim(run_states.MAIL, {api.workspace_id: 100}, 5))

    assert len([sql for sql in executed if "automation_deltas" in sql]) == 1
    # Two statuses, and for each step that it was entered and left.
    assert one("SELECT count(*) FROM automation_deltas") == 6


def test_runs_from_before_versions_were_counted_are_left_out_of_them_only(api: Api) -> None:
    automation_id = api.published(PAUSE, MARK)
    begin_some(api, automation_id, 1)
    rows("UPDATE runs SET is_counted = false")
    rows("DELETE FROM automation_deltas WHERE step <> ''")
    rows("UPDATE automation_deltas SET version = NULL, hour = NULL")
    wake_all()
    carry_on(api.workspace_id)

    found = read_twice(api, automation_id)

    assert without_zeros(found["runs"]) == {}
    assert [without_zeros(each) for each in found["steps"].values()] == [{}, {}]
    assert api.get(f"automations/{automation_id}").json["data"]["runs"]["completed"] == 1


def test_several_schedulers_add_each_change_up_once(api: Api) -> None:
    automation_id = api.published(MARK)
    for number in range(60):
        count(automation_id, this_hour() - (number % 4) * HOUR, ["entered", "left"][number % 2], step="mark")

    assert sum(in_threads([partial(counts.fold, 3)] * 20)) == 60

    assert without_zeros(read(api, automation_id)["steps"]["mark"]) == {"entered": 30, "left": 30}


# Times


def test_runs_are_chosen_by_the_hour_in_which_they_were_created(api: Api) -> None:
    automation_id = api.published(PAUSE, MARK)
    begin_some(api, automation_id, 3)
    late = all_of("SELECT id FROM runs ORDER BY id")[0]
    rows("UPDATE runs SET created_at = created_at - interval '3 hours' WHERE id = %s", (late,))
    rows("DELETE FROM automation_deltas")
    wake_all()
    carry_on(api.workspace_id)
    hour = Run.get_by_id(late).created_at.replace(minute=0, second=0, microsecond=0)

    earlier = read_twice(api, automation_id, since=hour.isoformat(), until=(hour + HOUR).isoformat())
    later = read_twice(api, automation_id, since=(hour + HOUR).isoformat())

    assert (earlier["runs"]["completed"], later["runs"]["completed"]) == (1, 2)
    assert (earlier["steps"]["mark"]["left"], later["steps"]["mark"]["left"]) == (1, 2)


def test_any_period_is_added_up_from_days_and_hours(api: Api) -> None:
    automation_id = api.published(MARK)
    hours = [midnight(2) + number * HOUR for number in range(0, 48, 5)] + [
        midnight(20) + number * DAY for number in (0, 1)
    ]
    for at in hours:
        count(automation_id, at)
    for since, until in [
        *[(midnight(2) + 3 * HOUR, midnight(1) + 7 * HOUR), (midnight(2), midnight(1)), (midnight(1), None)],
        *[(midnight(2) + 4 * HOUR, midnight(2) + 6 * HOUR), (None, midnight(2) + 11 * HOUR), (midnight(20), None)],
        *[(midnight(19), midnight(2) + HOUR), (midnight(30), midnight(20)), (None, midnight(19)), (None, None)],
    ]:
        query = {name: at.isoformat() for name, at in (("since", since), ("until", until)) if at}
        expected = [at for at in hours if (since is None or at >= since) and (until is None or at < until)]
        assert read(api, automation_id, **query)["runs"]["completed"] == len(expected), query
        before = len(expected)
        counts.fold(limit=1)
        assert read(api, automation_id, **query)["runs"]["completed"] == before
    while counts.fold():
        pass
    assert read(api, automation_id, since=midnight(2).isoformat())["runs"]["completed"] == 10


def test_a_time_zone_does_not_matter(api: Api) -> None:
    automation_id = api.published(MARK)
    count(automation_id, this_hour())

    since = this_hour().astimezone(tz=None).isoformat()
    assert read(api, automation_id, since=since)["runs"]["completed"] == 1
    plus_two = (this_hour() + 2 * HOUR).replace(tzinfo=None).isoformat() + "+02:00"
    assert read(api, automation_id, since=plus_two)["runs"]["completed"] == 1


@pytest.mark.parametrize(
    ("name", "at", "word"),
    [
        ("since", lambda: this_hour() + timedelta(minutes=30), "full hour"),
        ("until", lambda: this_hour() + timedelta(microseconds=1), "full hour"),
        ("since", lambda: midnight(8) + HOUR, "midnight"),
        ("until", lambda: midnight(8) + HOUR, "midnight"),
        ("since", lambda: midnight(91), "90 days"),
        ("until", lambda: datetime(2020, 1, 1, tzinfo=UTC), "90 days"),
    ],
)
def test_a_time_of_which_there_is_no_exact_count_is_refused(api: Api, name: str, at: Any, word: str) -> None:
    automation_id = api.published(MARK)

    response = api.get(f"automations/{automation_id}/counts", query_string={name: at().isoformat()})

    [fault] = response.json["errors"]
    assert (response.status_code, fault["pointer"]) == (422, f"/{name}")
    assert word in fault["detail"]


@pytest.mark.parametrize(
    "query", ["version=0", "version=x", "version=", "since=yesterday", "since=2026-11-01T00:00:00"]
)
def test_what_is_no_version_or_time_is_refused(api: Api, query: str) -> None:
    automation_id = api.published(MARK)

    response = api.get(f"automations/{automation_id}/counts?{query}")

    assert response.status_code == 422
    assert response.json["errors"][0]["pointer"] == "/" + query.partition("=")[0]


def test_a_period_that_ends_before_it_begins_is_refused(api: Api) -> None:
    automation_id = api.published(MARK)
    at = this_hour().isoformat()

    response = api.get(f"automations/{automation_id}/counts", query_string={"since": at, "until": at})

    assert (response.status_code, response.json["errors"][0]["pointer"]) == (422, "/until")


def test_an_automation_or_a_version_that_does_not_exist_is_not_found(api: Api, others: Api) -> None:
    automation_id = api.published(MARK)

    assert api.get(f"automations/{automation_id}/counts?version=2").status_code == 404
    assert api.get(f"automations/{UNKNOWN}/counts").status_code == 404
    assert others.get(f"automations/{automation_id}/counts").status_code == 404


# Bounds


def test_hours_are_kept_for_a_week_and_days_as_long_as_history(api: Api) -> None:
    automation_id = api.published(MARK)
    for days in (0, 7, 9, 90, 92):
        count(automation_id, midnight(days))
        counts.fold()
    # Those of which nothing is kept are only in the total.
    assert _kept() == {"all": 5, "day": 4, "hour": 2}
    rows(
        "UPDATE run_counts SET starts_at = starts_at - interval '9 days' WHERE grain = 'hour' AND starts_at < %s",
        (midnight(1),),
    )
    rows(
        "UPDATE run_counts SET starts_at = starts_at - interval '3 days' WHERE grain = 'day' AND starts_at < %s",
        (midnight(80),),
    )

    assert delete_old("old_counts") == 2
    assert delete_old("old_counts") == 0

    assert _kept() == {"all": 5, "day": 3, "hour": 1}
    assert read(api, automation_id)["runs"]["completed"] == 5


def test_concurrent_passes_forget_each_once(api: Api) -> None:
    automation_id = api.published(MARK)
    for number in range(30):
        count(automation_id, this_hour(), key=f"arm:{number}", step="mark")
    counts.fold()
    rows("UPDATE run_counts SET starts_at = '2020-01-01Z' WHERE grain <> 'all'")

    assert sum(in_threads([partial(delete_old, "old_counts", 10)] * 4)) == 60


def test_folding_does_not_wait_for_changes_that_another_scheduler_has_taken(api: Api) -> None:
    automation_id = api.published(MARK)
    count(automation_id, this_hour(), "completed")
    count(automation_id, this_hour(), "failed")

    with elsewhere(lambda: counts.fold(1)):
        assert counts.fold() == 1


def test_a_deleted_automation_leaves_no_counts(api: Api) -> None:
    automation_id = api.published(MARK)
    begin_some(api, automation_id, 1)
    counts.fold()

    api.done(api.delete(f"automations/{automation_id}"))
    counts.fold()

    assert one("SELECT count(*) FROM run_counts") == 0


def _kept() -> dict[str, int]:
    """How many runs are counted, by grain."""
    found: Counter[str] = Counter()
    for grain, amount in rows("SELECT grain, amount::int FROM run_counts"):
        found[grain] += amount
    return dict(found)

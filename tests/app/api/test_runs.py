"""Runs: reading them, cancelling, resuming and replaying them, one by one and all of an automation."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from app import database
from app.domain import writes
from app.domain.automations import bulk_changes, controls
from app.lib import ids
from app.models.runs import STATUSES, UNFINISHED, Run, RunStep
from tests.cast import Api, all_of, apply_until, elsewhere, event_bodies, one, row_counts, rung_on

TWO_STEPS = ({"id": "first", "kind": "add_tag", "tag": "a"}, {"id": "second", "kind": "add_tag", "tag": "b"})


@pytest.fixture
def contact_id(api: Api) -> str:
    return str(api.contact(email="ada@example.com")["id"])


@pytest.fixture
def automation_id(api: Api) -> str:
    return api.published(*TWO_STEPS)


@pytest.fixture
def run_id(api: Api, automation_id: str, contact_id: str) -> str:
    return start(api, automation_id, contact_id)


def start(api: Api, automation_id: str, contact_id: str, **body: Any) -> str:
    job = api.done(api.post(f"automations/{automation_id}/start", {"contact_id": contact_id, **body}))
    return str(job["resource"]["id"])


def show(api: Api, run_id: str) -> dict[str, Any]:
    return dict(api.get(f"runs/{run_id}").json["data"])


def counted(api: Api, automation_id: str) -> dict[str, int]:
    """The automation's runs by status, without those of which there are none."""
    found = api.get(f"automations/{automation_id}").json["data"]["runs"]
    return {status: count for status, count in found.items() if count}


def become(run_id: str, status: str, **fields: Any) -> None:
    """Puts the run into a state, as the engine would, with its count."""
    due = {"queued": "now()", "running": "now()"}.get(status, "NULL")
    finished = "NULL" if status in UNFINISHED else "now()"
    [(workspace_id, automation_id, before)] = database.rows(
        "SELECT workspace_id, automation_id, status FROM runs WHERE id = %s", (run_id,)
    )
    database.rows(
        f"UPDATE runs SET status = %s, due_at = {due}, finished_at = {finished}, started_at = now() WHERE id = %s",
        (status, run_id),
    )
    if status not in UNFINISHED:
        database.rows("UPDATE enrolments SET active = active - 1 WHERE automation_id = %s", (automation_id,))
    if fields:
        Run.update(**fields).where(Run.id == run_id).execute()
    for key, amount in ((before, -1), (status, 1)):
        database.rows(
            "INSERT INTO automation_deltas (id, workspace_id, automation_id, key, amount) VALUES (%s, %s, %s, %s, %s)",
            (ids.new("dlt"), workspace_id, automation_id, key, amount),
        )


def in_use(contact_id: str) -> Any:
    """Within the block another transaction holds the contact."""
    lock = "SELECT 1 FROM contacts WHERE id = %s FOR NO KEY UPDATE"
    return elsewhere(lambda: database.rows(lock, (contact_id,)))


# Reading


def test_runs_are_listed_newest_first(api: Api, others: Api, automation_id: str, contact_id: str) -> None:
    runs = [start(api, automation_id, contact_id) for _ in range(3)]
    start(others, others.published(), others.contact(email="eve@example.com")["id"])

    first = api.get("runs?limit=2").json
    second = api.get("runs", query_string={"limit": 2, "cursor": first["meta"]["nextCursor"]}).json

    assert [run["id"] for run in first["data"] + second["data"]] == runs[::-1]
    assert "steps" not in first["data"][0]


def test_runs_are_filtered_by_any_combination(api: Api, contact_id: str) -> None:
    automations = [api.published() for _ in range(2)]
    contacts = [contact_id, api.contact(email="lovelace@example.com")["id"]]
    for automation_id in automations:
        for each in contacts:
            start(api, automation_id, each)
            become(start(api, automation_id, each), "waiting")
    every = api.get("runs").json["data"]
    names = ("automation_id", "contact_id", "status")

    for chosen in range(1, 8):
        wanted = {name: every[0][name] for place, name in enumerate(names) if chosen & 1 << place}
        found = api.get("runs", query_string=wanted).json["data"]
        assert found == [run for run in every if wanted.items() <= run.items()]
        pages = [page["data"][0] for page in pages_of(api, "runs", wanted)]
        assert pages == found


def pages_of(api: Api, path: str, query: dict[str, str]) -> list[dict[str, Any]]:
    """All pages of one item each."""
    pages = [api.get(path, query_string=query | {"limit": 1}).json]
    while cursor := pages[-1]["meta"]["nextCursor"]:
        pages.append(api.get(path, query_string=query | {"limit": 1, "cursor": cursor}).json)
    return pages


def test_the_runs_of_an_automation_are_listed_below_it(api: Api, run_id: str, automation_id: str) -> None:
    other = api.published()

    assert [run["id"] for run in api.get(f"automations/{automation_id}/runs").json["data"]] == [run_id]
    assert api.get(f"automations/{automation_id}/runs?status=failed").json["data"] == []
    assert api.get(f"automations/{other}/runs").json["data"] == []


def test_a_run_is_shown_with_its_log(api: Api, run_id: str) -> None:
    at = datetime.fromisoformat("2026-11-21T10:00:00+00:00")
    detail = {"input": {"tag": "a"}, "output": None, "code": None, "text": "Added the tag 'a'."}
    for number in (2, 1):
        RunStep.insert(
            id=ids.new("stp"),
            workspace_id=api.workspace_id,
            run_id=run_id,
            number=number,
            step="first",
            kind="add_tag",
            status="succeeded",
            at=at,
            detail=detail,
        ).execute()

    steps = show(api, run_id)["steps"]

    assert [step["number"] for step in steps] == [1, 2]
    assert steps[0] == {
        "number": 1,
        "id": "first",
        "kind": "add_tag",
        "status": "succeeded",
        "at": "2026-11-21T10:00:00.000Z",
        "detail": detail,
    }


def test_of_a_long_log_the_last_entries_are_shown(api: Api, run_id: str) -> None:
    database.rows(
        "INSERT INTO run_steps (id, workspace_id, run_id, number, step, kind, status, at, detail)"
        " SELECT id, %s, %s, number, 'first', 'add_tag', 'succeeded', now(), '{}'"
        " FROM unnest(%s::text[]) WITH ORDINALITY AS entries(id, number)",
        (api.workspace_id, run_id, [ids.new("stp") for _ in range(1_005)]),
    )

    steps = show(api, run_id)["steps"]

    assert (steps[0]["number"], steps[-1]["number"], len(steps)) == (6, 1_005, 1_000)


# Cancelling one


@pytest.mark.parametrize("status", UNFINISHED)
def test_an_unfinished_run_is_cancelled(api: Api, automation_id: str, run_id: str, status: str) -> None:
    become(run_id, status)

    job = api.done(api.post(f"runs/{run_id}/cancel"))

    assert job["status"] == "succeeded"
    run = show(api, run_id)
    assert (run["status"], run["reason"], run["finished_at"] is not None) == ("cancelled", "request", True)
    assert all_of("SELECT due_at FROM runs") == [None]
    assert one("SELECT active FROM enrolments") == 0
    assert counted(api, automation_id) == {"cancelled": 1}
    told = event_bodies(api.workspace_id)[-1]
    assert (told["kind"], told["data"]["run"]["id"]) == ("automation.cancelled", run_id)
    assert told["data"]["automation"] == {"id": automation_id, "name": "Welcome", "version": 1}


def test_cancelling_again_changes_nothing(api: Api, run_id: str) -> None:
    api.done(api.post(f"runs/{run_id}/cancel"))
    before = show(api, run_id)

    assert api.done(api.post(f"runs/{run_id}/cancel"))["status"] == "succeeded"

    assert show(api, run_id) == before
    assert [each["kind"] for each in event_bodies(api.workspace_id)].count("automation.cancelled") == 1


@pytest.mark.parametrize("status", ["completed", "failed"])
def test_a_run_that_has_ended_cannot_be_cancelled(api: Api, run_id: str, status: str) -> None:
    become(run_id, status)
    before = row_counts()

    answer = api.post(f"runs/{run_id}/cancel")

    assert (answer.status_code, answer.get_json(force=True)["detail"]) == (
        409,
        f"This run has {status} and cannot be cancelled.",
    )
    assert row_counts() == before


def test_a_run_can_be_cancelled_before_its_start_takes_effect(api: Api, automation_id: str, contact_id: str) -> None:
    accepted = api.post(f"automations/{automation_id}/start", {"contact_id": contact_id})
    run_id = accepted.json["data"]["resource"]["id"]

    job = api.done(api.post(f"runs/{run_id}/cancel"))

    assert (job["status"], show(api, run_id)["status"]) == ("succeeded", "cancelled")


def test_a_run_whose_contact_is_held_is_cancelled_later(api: Api, run_id: str, contact_id: str) -> None:
    job = api.post(f"runs/{run_id}/cancel")

    with in_use(contact_id):
        writes.work(api.workspace_id)
        assert api.job(job)["status"] == "running"

    assert api.done(job)["status"] == "succeeded"


# Resuming one


def test_a_run_that_a_member_holds_is_resumed(api: Api, automation_id: str, run_id: str) -> None:
    become(run_id, "held", waits_for="member")

    job = api.done(api.post(f"runs/{run_id}/resume"))

    assert job["status"] == "succeeded"
    run = Run.get_by_id(run_id)
    assert (run.status, run.is_released, run.due_at is not None) == ("running", True, True)
    assert counted(api, automation_id) == {"running": 1}
    assert rung_on("runs") == [api.workspace_id]


@pytest.mark.parametrize("status", [status for status in STATUSES if status != "held"])
def test_a_run_that_nothing_holds_cannot_be_resumed(api: Api, run_id: str, status: str) -> None:
    become(run_id, status)

    job = api.done(api.post(f"runs/{run_id}/resume"))

    assert (job["status"], job["problem"]["status"]) == ("failed", 409)
    assert show(api, run_id)["status"] == status


def test_a_run_that_a_pause_holds_is_resumed_with_its_automation(api: Api, run_id: str) -> None:
    become(run_id, "held", reason="pause")

    job = api.done(api.post(f"runs/{run_id}/resume"))

    assert job["problem"]["detail"].endswith("Resume the automation.")


# Replaying one


def test_a_run_that_has_ended_is_replayed_from_a_step(api: Api, automation_id: str, contact_id: str) -> None:
    first = start(api, automation_id, contact_id, variables={"order": "order-1"})
    become(first, "failed", saved={"first": {"tag": "a"}}, event={"kind": "tag.added"})
    api.done(api.post(f"automations/{automation_id}/publish"))

    job = api.done(api.post(f"runs/{first}/replay", {"from_step": "second"}))

    assert job["status"] == "succeeded"
    run = Run.get_by_id(job["resource"]["id"])
    assert (run.status, run.version, run.step, run.saved) == ("queued", 1, "second", {"first": {"tag": "a"}})
    assert (run.variables, run.event, run.contact_id) == ({"order": "order-1"}, {"kind": "tag.added"}, contact_id)
    assert show(api, run.id)["cause"] == {"job_id": job["id"], "event_id": None, "run_id": first}
    assert show(api, first)["status"] == "failed"
    assert counted(api, automation_id) == {"queued": 1, "failed": 1}


def test_a_replay_begins_with_the_first_step_by_default(api: Api, run_id: str) -> None:
    become(run_id, "completed", saved={"first": {"tag": "a"}})

    replayed = api.done(api.post(f"runs/{run_id}/replay"))["resource"]["id"]

    run = Run.get_by_id(replayed)
    assert (run.step, run.saved) == (None, {})


def test_a_replay_can_be_read_at_once(api: Api, run_id: str) -> None:
    become(run_id, "completed")

    replayed = api.post(f"runs/{run_id}/replay").json["data"]["resource"]["id"]

    assert (show(api, replayed)["status"], show(api, replayed)["version"]) == ("queued", 1)


def test_a_replay_does_not_ask_for_reentry(api: Api, contact_id: str) -> None:
    run_id = start(api, api.published(reentry="once"), contact_id)
    become(run_id, "failed")

    assert api.done(api.post(f"runs/{run_id}/replay"))["status"] == "succeeded"


def test_an_unknown_step_is_refused_at_once(api: Api, run_id: str) -> None:
    become(run_id, "failed")

    answer = api.post(f"runs/{run_id}/replay", {"from_step": "third"})

    assert answer.status_code == 422
    assert answer.get_json(force=True)["errors"] == [
        {"pointer": "/from_step", "detail": "Version 1 of this automation has no step 'third'."}
    ]


def test_an_unfinished_run_is_not_replayed(api: Api, run_id: str) -> None:
    job = api.done(api.post(f"runs/{run_id}/replay"))

    assert (job["status"], job["problem"]["status"]) == ("failed", 409)
    assert one("SELECT count(*) FROM runs") == 1


def test_a_run_of_an_unpublished_automation_is_not_replayed(api: Api, automation_id: str, run_id: str) -> None:
    become(run_id, "failed")
    api.post(f"automations/{automation_id}/unpublish")

    job = api.done(api.post(f"runs/{run_id}/replay"))

    assert job["problem"]["type"].endswith("/automation-not-published")


# All runs of an automation


def test_a_dry_run_counts_and_changes_nothing(api: Api, automation_id: str, contact_id: str) -> None:
    for _ in range(3):
        start(api, automation_id, contact_id)
    before = row_counts()

    answer = api.post(f"automations/{automation_id}/cancel-runs", {"dry_run": True})

    assert (answer.status_code, answer.json) == (200, {"data": {"count": 3}})
    assert row_counts() == before


def test_all_unfinished_runs_are_cancelled(
    api: Api, automation_id: str, contact_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_changes, "PART", 2)
    runs = [start(api, automation_id, contact_id) for _ in range(8)]
    for run_id, status in zip(runs, STATUSES, strict=False):
        become(run_id, status)
    other = start(api, api.published(), contact_id)

    job = api.done(api.post(f"automations/{automation_id}/cancel-runs"))

    assert (job["status"], job["resource"]["id"]) == ("succeeded", automation_id)
    assert counted(api, automation_id) == {"completed": 1, "failed": 1, "cancelled": 6}
    assert show(api, other)["status"] == "queued"
    assert one("SELECT active FROM enrolments WHERE automation_id = %s", automation_id) == 0


def test_runs_are_cancelled_by_filters(api: Api, automation_id: str, contact_id: str) -> None:
    lovelace = api.contact(email="lovelace@example.com")["id"]
    mine, hers, waiting = (start(api, automation_id, each) for each in (contact_id, lovelace, lovelace))
    become(waiting, "waiting")
    created = show(api, waiting)["created_at"]
    later = (datetime.fromisoformat(created) + timedelta(milliseconds=1)).isoformat()
    path = f"automations/{automation_id}/cancel-runs"
    filters = (
        ({"contact_id": contact_id}, [mine]),
        ({"contact_id": lovelace, "status": "waiting"}, [waiting]),
        ({"status": "queued"}, [mine, hers]),
        ({"since": created}, [waiting]),
        ({"since": created, "contact_id": contact_id}, []),
        ({"until": created}, [mine, hers]),
        ({"until": later}, [mine, hers, waiting]),
        ({"since": later}, []),
    )

    for given, expected in filters:
        assert api.post(path, {**given, "dry_run": True}).json["data"]["count"] == len(expected), given
    api.done(api.post(path, {"since": created, "status": "waiting"}))
    assert [show(api, run_id)["status"] for run_id in (mine, hers, waiting)] == ["queued", "queued", "cancelled"]
    api.done(api.post(path, {"contact_id": contact_id, "until": later}))
    assert [show(api, run_id)["status"] for run_id in (mine, hers)] == ["cancelled", "queued"]


def test_only_runs_that_were_there_are_cancelled(api: Api, automation_id: str, contact_id: str) -> None:
    body = {"contact_id": contact_id}
    before = api.post(f"automations/{automation_id}/start", body).json["data"]["resource"]["id"]
    job = api.post(f"automations/{automation_id}/cancel-runs", {})
    after = api.post(f"automations/{automation_id}/start", body).json["data"]["resource"]["id"]

    api.done(job)

    assert [show(api, run_id)["status"] for run_id in (before, after)] == ["cancelled", "queued"]


def test_runs_whose_contacts_are_held_are_cancelled_in_a_later_part(
    api: Api, automation_id: str, contact_id: str
) -> None:
    other = api.contact(email="lovelace@example.com")["id"]
    held, free = (start(api, automation_id, each) for each in (contact_id, other))
    job = api.post(f"automations/{automation_id}/cancel-runs", {})

    with in_use(contact_id):
        apply_until(api.workspace_id, "SELECT 1 FROM runs WHERE status = 'cancelled'")
        assert [show(api, run_id)["status"] for run_id in (held, free)] == ["queued", "cancelled"]
        assert api.job(job)["status"] == "running"

    assert api.done(job)["status"] == "succeeded"
    assert show(api, held)["status"] == "cancelled"


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"status": "completed"}, "/status"),
        ({"contact_id": "con_01kaj5bd40e6rr3f5y2kq0w9xz"}, "/contact_id"),
        ({"since": "yesterday"}, "/since"),
        ({"since": "2026-11-21T10:00:00Z", "until": "2026-11-21T10:00:00Z"}, "/until"),
        ({"dry_run": "yes"}, "/dry_run"),
        ({"color": "red"}, "/color"),
    ],
    ids=str,
)
def test_a_selection_that_cannot_be_is_refused(
    api: Api, automation_id: str, body: dict[str, Any], pointer: str
) -> None:
    answer = api.post(f"automations/{automation_id}/cancel-runs", body)

    assert answer.status_code == 422
    assert [error["pointer"] for error in answer.get_json(force=True)["errors"]] == [pointer]


@pytest.mark.parametrize(("action", "state"), [("resume", "published"), ("unpublish", "unpublished")])
def test_the_end_of_a_pause_releases_the_runs_that_it_holds(
    api: Api, automation_id: str, contact_id: str, action: str, state: str
) -> None:
    runs = [start(api, automation_id, contact_id) for _ in range(6)]
    api.done(api.post(f"automations/{automation_id}/pause"))
    for run_id in runs[:4]:
        become(run_id, "held", reason="pause")
    become(runs[4], "held", waits_for="member")
    Run.update(started_at=None).where(Run.id == runs[0]).execute()

    job = api.done(api.post(f"automations/{automation_id}/{action}"))
    released = [controls.release_held(3), controls.release_held(3)]

    assert (job["status"], released) == ("succeeded", [3, 1])
    assert api.get(f"automations/{automation_id}").json["data"]["status"] == state
    assert all_of("SELECT id FROM runs WHERE due_at IS NULL") == [runs[4]]
    assert rung_on("runs") == [api.workspace_id]


def test_the_end_of_a_pause_waits_for_no_transaction(api: Api, automation_id: str) -> None:
    api.done(api.post(f"automations/{automation_id}/pause"))
    jobs = [api.post(f"automations/{automation_id}/{action}") for action in ("resume", "pause", "unpublish")]
    behind = api.post("contacts", {"email": "next@example.com"})

    with elsewhere(lambda: database.rows("SELECT pg_current_xact_id()")):
        writes.work(api.workspace_id)

    assert [api.job(job)["status"] for job in (*jobs, behind)] == ["succeeded"] * 4


def test_the_runs_of_a_deleted_automation_are_cancelled_and_can_be_read(
    api: Api, automation_id: str, contact_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_changes, "PART", 2)
    runs = [start(api, automation_id, contact_id) for _ in range(5)]
    become(runs[0], "completed")

    assert api.done(api.delete(f"automations/{automation_id}"))["status"] == "succeeded"

    assert [show(api, run_id)["status"] for run_id in runs] == ["completed", *["cancelled"] * 4]
    assert len(api.get("runs", query_string={"automation_id": automation_id}).json["data"]) == 5
    assert [one(f"SELECT count(*) FROM {table}") for table in ("enrolments", "automations")] == [0, 0]
    assert api.post(f"automations/{automation_id}/start", {"contact_id": contact_id}).status_code == 404
    assert api.done(api.post(f"runs/{runs[0]}/replay"))["problem"]["status"] == 404

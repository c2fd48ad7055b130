"""Replays: canary, limit, pause and abort, and how long they are kept."""

from __future__ import annotations

from typing import Any

import pytest

from app import database
from app.domain.deliveries import replays, resends
from app.domain.work import controlled_batches
from app.errors import BellhopError
from app.models.deliveries import Delivery
from app.models.endpoints import Endpoint
from app.models.jobs import Job
from app.models.replays import Replay
from scheduler.timetable import Timetable
from tests.cast import Api, accept, all_of, apply, in_threads, one, replay
from tests.replaying import another, begin, move, pending, progress, replayed, shown
from tests.sending import make


@pytest.fixture
def endpoint(api: Api) -> Endpoint:
    return another(api)


def test_a_canary_sends_one_and_waits_for_the_word_to_go_on(api: Api, endpoint: Endpoint) -> None:
    gone, *made = [*make(endpoint, 1, body=True), *make(endpoint, 3)]
    replay_id = begin(api.workspace_id, canary=True, statuses=["failed"])
    database.rows("DELETE FROM deliveries WHERE id = %s", (gone,))

    replay(replay_id)
    assert progress(shown(replay_id)) == ("canary", 4, 1, 1)
    assert pending() == made[:1]
    assert (shown(replay_id).due_at, shown(replay_id).wakes_at) == (None, None)

    assert move(replay_id, "continue") is None
    replay(replay_id)
    assert progress(shown(replay_id)) == ("done", 4, 3, 1)
    assert pending() == made


def test_a_canary_that_was_all_there_was_ends_the_replay(api: Api, endpoint: Endpoint) -> None:
    make(endpoint, 1)

    assert progress(replayed(api.workspace_id, canary=True, statuses=["failed"])) == ("done", 1, 1, 0)
    assert progress(replayed(api.workspace_id, canary=True, kinds=["tag.added"])) == ("done", 0, 0, 0)


def test_a_replay_with_a_limit_begins_with_one_and_waits(api: Api, endpoint: Endpoint) -> None:
    make(endpoint, 100)
    replay_id = begin(api.workspace_id, per_second=40, statuses=["failed"])

    replay(replay_id)
    found = shown(replay_id)
    assert (found.sent, found.due_at) == (1, None)
    assert found.wakes_at == found.paced_until
    assert one("SELECT extract(epoch FROM paced_until - at) * 1000 FROM replays, replay_rows") == 25


@pytest.mark.parametrize(("milliseconds", "room"), [(-1, 0), (0, 1), (20, 1), (110, 5), (499, 20), (60_000, 21)])
def test_what_a_limit_missed_is_made_up_for_half_a_second(
    api: Api, endpoint: Endpoint, milliseconds: int, room: int
) -> None:
    make(endpoint, 1)
    replay_id = begin(api.workspace_id, per_second=40, statuses=["failed"])

    with database.transaction():  # in which the time stands still
        late = "now() - %s * interval '1 millisecond'"
        database.rows(f"UPDATE replays SET paced_until = {late}", (milliseconds,))
        found = shown(replay_id)
        assert controlled_batches.allowed(found, 500) == room


def test_a_replay_with_a_limit_is_woken_when_it_may_send_more(api: Api, endpoint: Endpoint) -> None:
    make(endpoint, 2)
    replay_id = begin(api.workspace_id, per_second=1, statuses=["failed"])
    replay(replay_id)
    Timetable().run_due()
    assert shown(replay_id).due_at is None

    database.rows("UPDATE replays SET wakes_at = now(), paced_until = now()")
    Timetable().run_due()
    replay(replay_id)

    assert progress(shown(replay_id)) == ("done", 2, 2, 0)


def test_what_is_skipped_uses_up_no_limit(api: Api, endpoint: Endpoint) -> None:
    made = make(endpoint, 120)
    replay_id = begin(api.workspace_id, per_second=1, statuses=["failed"])
    database.rows("DELETE FROM deliveries WHERE id = ANY(%s)", (made[1:110],))

    replay(replay_id)
    assert progress(shown(replay_id)) == ("running", 120, 1, 49)

    database.rows("UPDATE replays SET due_at = now(), wakes_at = NULL, paced_until = now() - interval '1 millisecond'")
    replay(replay_id)
    assert progress(shown(replay_id))[2:] == (2, 109)


def test_a_pause_holds_and_going_on_keeps_to_the_limit(api: Api, endpoint: Endpoint) -> None:
    made = make(endpoint, 3)
    replay_id = begin(api.workspace_id, per_second=1, statuses=["failed"])
    replay(replay_id)

    assert move(replay_id, "pause") is None
    found = shown(replay_id)
    assert (found.state, found.due_at, found.wakes_at) == ("paused", None, None)
    Timetable().run_due()
    replay(replay_id)
    assert pending() == made[:1]

    database.rows("UPDATE replays SET paced_until = now() + interval '1 hour'")
    assert move(replay_id, "continue") is None
    found = shown(replay_id)
    assert (found.state, found.due_at, found.wakes_at) == ("running", None, found.paced_until)


def test_a_worker_that_has_claimed_a_replay_that_is_then_paused_sends_nothing(
    api: Api, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(endpoint, 3)
    replay_id = begin(api.workspace_id, statuses=["failed"])
    real = replays._step

    def pause_first(claimed: Any) -> None:
        in_threads([lambda: move(replay_id, "pause")])
        real(claimed)

    monkeypatch.setattr(replays, "_step", pause_first)

    replays.work(replay_id)

    assert progress(shown(replay_id)) == ("paused", 3, 0, 0)
    assert pending() == []


@pytest.mark.parametrize("state", ["canary", "running", "paused"])
def test_an_abort_leaves_the_rest_as_it_is(api: Api, endpoint: Endpoint, state: str) -> None:
    make(endpoint, 3)
    replay_id = begin(api.workspace_id, canary=True, statuses=["failed"])
    replay(replay_id)
    database.rows("UPDATE replays SET state = %s", (state,))

    assert move(replay_id, "abort") is None
    replay(replay_id)

    found = shown(replay_id)
    assert (progress(found), found.finished_at is not None) == (("aborted", 3, 1, 0), True)
    assert len(pending()) == 1
    assert one("SELECT count(*) FROM replay_parts") == 0


@pytest.mark.parametrize(
    ("state", "refused"),
    [
        ("done", {"pause", "continue", "abort"}),
        ("aborted", {"pause", "continue"}),
        ("paused", set()),
        ("running", set()),
        ("canary", set()),
    ],
)
def test_a_replay_that_has_ended_stays_so(api: Api, endpoint: Endpoint, state: str, refused: set[str]) -> None:
    make(endpoint, 3)
    for verb in ("pause", "continue", "abort"):
        replay_id = begin(api.workspace_id, statuses=["failed"])
        database.rows("UPDATE replays SET state = %s WHERE id = %s", (state, replay_id))

        problem = move(replay_id, verb)

        assert (problem is not None) == (verb in refused)
        if problem:
            assert (problem["status"], problem["detail"]) == (409, f"This replay is {state}.")


def test_a_second_click_changes_nothing_and_is_not_in_the_audit_log(api: Api, endpoint: Endpoint) -> None:
    make(endpoint, 1)
    replay_id = begin(api.workspace_id, statuses=["failed"])

    assert [move(replay_id, "pause"), move(replay_id, "pause")] == [None, None]

    assert all_of("SELECT action FROM audit_entries WHERE target_id = %s ORDER BY id", replay_id) == [
        "replays.create",
        "replays.pause",
    ]


# Kept


def test_old_replays_are_forgotten_with_their_rows_some_at_a_time_and_not_while_they_run(
    api: Api, endpoint: Endpoint
) -> None:
    make(endpoint, 5)
    old = replayed(api.workspace_id, statuses=["failed"])
    make(endpoint, 2)
    replayed(api.workspace_id, statuses=["failed"], canary=True)
    make(endpoint, 2)
    running = begin(api.workspace_id, statuses=["failed"])
    database.rows("UPDATE replays SET created_at = now() - interval '91 days'")
    database.rows("UPDATE replays SET created_at = now() - interval '92 days' WHERE id = %s", (old.id,))
    recent = replayed(api.workspace_id, statuses=["held"])

    assert [replays.forget_old(limit=3) for _ in range(4)] == [3, 3, 2, 0]

    assert all_of("SELECT id FROM replays ORDER BY id") == [running, recent.id]
    assert one("SELECT count(*) FROM replay_rows") == 0
    assert all_of("SELECT DISTINCT replay_id FROM replay_parts") == [running]


def test_a_replay_of_another_workspace_is_not_found(api: Api, others: Api, endpoint: Endpoint) -> None:
    make(endpoint, 1)
    replay_id = begin(api.workspace_id, statuses=["failed"])

    with pytest.raises(BellhopError):
        Replay.find(others.workspace_id, replay_id)
    job = accept(others.workspace_id, "replays.pause", {}, replay_id)
    apply(others.workspace_id)

    assert Job.get_by_id(job.id).problem["status"] == 404
    assert shown(replay_id).state == "running"


def test_what_is_sent_anew_leaves_the_delivery_that_arrived_as_it_was_but_for_its_claims(endpoint: Endpoint) -> None:
    [delivered] = make(endpoint, 1, "delivered")
    before = Delivery.get_by_id(delivered).__data__

    with database.transaction():
        resends.send_again({delivered: "delivered"})

    assert Delivery.get_by_id(delivered).__data__ == before | {"claim": before["claim"] + 1}

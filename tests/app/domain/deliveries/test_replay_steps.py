"""Steps of replays: each delivery is sent once or left alone with a reason, whatever happens meanwhile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from app import bells, database
from app.domain.deliveries import attempts, lanes, replays
from app.lib import clock
from app.models.deliveries import Delivery
from app.models.endpoints import Endpoint
from app.models.replays import ReplayRow
from scheduler.timetable import Timetable
from tests.cast import Api, accept, all_of, apply, in_threads, replay
from tests.replaying import another, begin, outcomes, pending, progress, replayed, shown
from tests.sending import OK, locked, make, record, set_state, take


@pytest.fixture
def endpoint(api: Api) -> Endpoint:
    return another(api)


def succeed(endpoint: Endpoint) -> None:
    record(take(endpoint), OK)


def resend(endpoint: Endpoint, delivery_id: str) -> None:
    api = endpoint.workspace_id
    accept(api, "deliveries.resend", {"delivery_id": delivery_id})
    apply(api)


def test_what_failed_after_the_replay_began_is_not_part_of_it(api: Api, endpoint: Endpoint) -> None:
    before = make(endpoint, 1)
    replay_id = begin(api.workspace_id, statuses=["failed"])
    make(endpoint, 1)
    make(endpoint, 1, created_at=clock.now() - timedelta(days=1))

    replay(replay_id)

    assert outcomes(replay_id).keys() == set(before)


@pytest.mark.parametrize(
    ("reason", "happens"),
    [
        ("delivered", lambda endpoint, id: (resend(endpoint, id), succeed(endpoint))),
        ("in_progress", lambda endpoint, id: resend(endpoint, id)),
        ("in_progress", lambda endpoint, id: (resend(endpoint, id), attempts.claim(lanes.FAST, {endpoint.id: 1}))),
        ("sent_meanwhile", lambda endpoint, id: (resend(endpoint, id), fail_for_good(endpoint))),
        ("endpoint_stopped", lambda endpoint, id: set_state(endpoint, "stopped")),
        ("endpoint_deleted", lambda endpoint, id: set_state(endpoint, "deleted")),
        ("endpoint_deleted", lambda endpoint, id: Endpoint.delete().where(Endpoint.id == endpoint.id).execute()),
        ("body_gone", lambda endpoint, id: database.rows("DELETE FROM events")),
        ("expired", lambda endpoint, id: database.rows("DELETE FROM deliveries WHERE id = %s", (id,))),
        (None, lambda endpoint, id: Delivery.update(status="held").where(Delivery.id == id).execute()),
    ],
)
def test_a_delivery_that_cannot_or_need_not_be_sent_any_more_is_skipped_and_the_row_says_why(
    api: Api, endpoint: Endpoint, reason: str | None, happens: Callable[[Endpoint, str], Any]
) -> None:
    [delivery_id] = make(endpoint, 1)
    replay_id = begin(api.workspace_id, statuses=["failed"])

    happens(endpoint, delivery_id)
    before = everything(delivery_id)
    replay(replay_id)

    assert outcomes(replay_id) == {delivery_id: reason}
    assert progress(shown(replay_id)) == ("done", 1, reason is None, reason is not None)
    assert (everything(delivery_id) == before) == (reason is not None)


def fail_for_good(endpoint: Endpoint) -> None:
    take(endpoint)
    database.rows("UPDATE deliveries SET status = 'failed', due_at = NULL, leased_until = NULL, next_attempt_at = NULL")


def everything(delivery_id: str) -> list[Any]:
    return database.rows("SELECT * FROM deliveries WHERE id = %s", (delivery_id,))


def test_what_waits_for_its_retry_becomes_due_and_keeps_its_schedule(api: Api, endpoint: Endpoint) -> None:
    [waiting] = make(endpoint, 1, "pending", tries=2, next_attempt_at=clock.now() + timedelta(hours=1))
    database.rows("UPDATE deliveries SET due_at = NULL")

    assert outcomes(replayed(api.workspace_id, statuses=["pending"]).id) == {waiting: None}

    found = Delivery.get_by_id(waiting)
    assert (found.tries, found.next_attempt_at, found.due_at is not None) == (2, None, True)


def test_a_delivered_one_goes_out_as_a_new_delivery_once_for_two_replays_that_overlap(
    api: Api, endpoint: Endpoint
) -> None:
    made = make(endpoint, 3, "delivered")
    first, second = (begin(api.workspace_id, statuses=["delivered"]) for _ in range(2))

    replay(first)
    replay(second)
    later = replayed(api.workspace_id, statuses=["delivered"])

    assert outcomes(first) == dict.fromkeys(made)
    assert outcomes(second) == dict.fromkeys(made, "delivered")
    assert (later.count, later.sent) == (3, 3)
    sent_as = [row.sent_as for row in ReplayRow.select().where(ReplayRow.replay_id == first).order_by(ReplayRow.number)]
    assert all_of("SELECT resent_from FROM deliveries WHERE id = ANY(%s) ORDER BY id", sent_as) == made
    assert Counter(all_of("SELECT resent_from FROM deliveries WHERE resent_from IS NOT NULL")) == dict.fromkeys(made, 2)


def test_two_replays_at_the_same_time_send_each_delivery_once(api: Api, endpoint: Endpoint) -> None:
    made = make(endpoint, 1_200)
    both = [begin(api.workspace_id, statuses=["failed"]) for _ in range(2)]

    in_threads([lambda replay_id=replay_id: replay(replay_id) for replay_id in both * 2])

    found = [outcomes(replay_id) for replay_id in both]
    assert [progress(shown(replay_id))[:2] for replay_id in both] == [("done", 1_200)] * 2
    for delivery_id in made:
        assert sorted([each[delivery_id] is None for each in found]) == [False, True]
    assert {reason for each in found for reason in each.values()} == {None, "in_progress"}
    assert sorted(pending()) == made


def test_a_second_replay_sends_nothing_that_failed_again_after_the_first(api: Api, endpoint: Endpoint) -> None:
    made = make(endpoint, 2)
    first, second = (begin(api.workspace_id, statuses=["failed"]) for _ in range(2))
    replay(first)
    fail_for_good(endpoint)

    replay(second)

    assert outcomes(second) == dict.fromkeys(made, "sent_meanwhile")
    assert pending() == []


# Batches


def test_a_batch_that_dies_before_its_commit_has_done_nothing(
    api: Api, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make(endpoint, 1_100)
    replay_id = begin(api.workspace_id, statuses=["failed"])
    real, calls = replays._save, []

    def die_the_second_time(*arguments: Any) -> None:
        real(*arguments)
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(replays, "_save", die_the_second_time)
    with pytest.raises(KeyboardInterrupt):
        replay(replay_id)
    assert progress(shown(replay_id)) == ("running", 1_100, 500, 0)
    assert pending() == made[:500]

    replay(replay_id)

    assert progress(shown(replay_id)) == ("done", 1_100, 1_100, 0)
    assert pending() == made
    assert list(outcomes(replay_id)) == made


def test_a_delivery_that_somebody_else_is_changing_is_waited_for_and_not_left_out(api: Api, endpoint: Endpoint) -> None:
    made = make(endpoint, 700)
    replay_id = begin(api.workspace_id, statuses=["failed"])

    with locked(made[100], made[300]):
        replays.work(replay_id)
        assert progress(shown(replay_id)) == ("running", 700, 100, 0)
    replay(replay_id)

    assert progress(shown(replay_id))[:2] == ("done", 700)
    assert list(outcomes(replay_id)) == made
    assert [id for id, reason in outcomes(replay_id).items() if reason] == [made[100], made[300]]


def test_what_is_sent_is_rung_for(api: Api, endpoint: Endpoint) -> None:
    make(endpoint, 1)
    make(second := another(api), 1)
    replay_id = begin(api.workspace_id, statuses=["failed"])
    bells.flush(20)
    bells.flags().flushdb()

    replay(replay_id)

    bells.flush(20)
    assert {key.decode() for key in bells.flags().keys("bell:deliveries:*")} == {
        f"bell:deliveries:{each.id}" for each in (endpoint, second)
    }


def test_the_scheduler_rings_for_a_replay_whose_bell_was_lost(api: Api, endpoint: Endpoint) -> None:
    make(endpoint, 1)
    replay_id = begin(api.workspace_id, statuses=["failed"])
    bells.flush(20)
    bells.flags().flushdb()
    database.rows("UPDATE replays SET due_at = now() - interval '5 seconds'")

    Timetable().run_due()

    bells.flush(20)
    assert bells.flags().exists(f"bell:replays:{replay_id}")

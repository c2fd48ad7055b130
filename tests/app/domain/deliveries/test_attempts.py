from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import psycopg2
import pytest

from app import database
from app.config import settings
from app.domain.deliveries import attempts, lanes
from app.models.deliveries import Attempt, Delivery
from app.models.endpoints import Endpoint
from tests.cast import Api, in_threads, make_endpoint, one
from tests.growth import blocks_read
from tests.sending import BROKEN, FAULT, GONE, OK, failures, outcome, record, set_failures, states, take

Happen = Callable[[int], None]


@contextmanager
def locked(table: str, *ids: str) -> Iterator[None]:
    """Another transaction holds these rows until the block ends."""
    connection = psycopg2.connect(settings().database_url)
    connection.cursor().execute(f"SELECT FROM {table} WHERE id = ANY(%s) FOR UPDATE", (list(ids),))
    try:
        yield
    finally:
        connection.rollback()
        connection.close()


@pytest.fixture(autouse=True)
def impatient(empty: None) -> Iterator[None]:
    """A statement that waits for a lock fails instead of hanging."""
    database.rows("SET lock_timeout = '5s'")
    yield
    database.rows("RESET lock_timeout")


@pytest.mark.parametrize("answer", [OK, BROKEN], ids=["success", "failure"])
def test_an_outcome_whose_delivery_is_locked_is_recorded_later_and_the_others_at_once(
    endpoint: Endpoint, happen: Happen, answer: attempts.Answer
) -> None:
    happen(3)
    dispatches = take(endpoint)
    busy = dispatches[1]

    with locked("deliveries", busy.claimed.id):
        later = record(dispatches, answer)
        assert [each.dispatch for each in later] == [busy]
        assert one("SELECT count(*) FROM attempts") == 2

    assert attempts.record(later) == []
    assert one("SELECT count(*) FROM attempts") == 3
    assert Delivery.get_by_id(busy.claimed.id).attempts == 1


def test_outcomes_of_an_endpoint_that_is_locked_are_recorded_later_and_those_of_others_at_once(
    api: Api, endpoint: Endpoint, happen: Happen
) -> None:
    other = Endpoint.get_by_id(make_endpoint(api.workspace_id, "https://other.example/")[0])
    happen(3)
    mine, others = take(endpoint), take(other)

    with locked("endpoints", endpoint.id):
        later = attempts.record(
            [*(outcome(each, BROKEN) for each in mine), *(outcome(each, BROKEN) for each in others)]
        )
        assert [each.dispatch for each in later] == mine
        assert (failures(endpoint), failures(other)) == (0, 3)

    assert attempts.record(later) == []
    assert failures(endpoint) == 3


def test_a_success_at_a_failing_endpoint_that_is_locked_waits_so_that_its_count_is_reset(
    endpoint: Endpoint, happen: Happen
) -> None:
    happen(2)
    set_failures(endpoint, 3)
    dispatches = take(endpoint)

    with locked("endpoints", endpoint.id):
        later = record(dispatches, OK)
        assert [each.dispatch for each in later] == dispatches
        assert states() == ["pending"] * 2

    assert attempts.record(later) == []
    assert (failures(endpoint), states()) == (0, ["delivered"] * 2)


def test_a_success_at_a_healthy_endpoint_does_not_wait_for_its_row(endpoint: Endpoint, happen: Happen) -> None:
    happen(1)
    dispatches = take(endpoint)

    with locked("endpoints", endpoint.id):
        assert record(dispatches, OK) == []

    assert states() == ["delivered"]


def test_a_late_outcome_whose_delivery_is_locked_and_passed_on_is_not_kept(endpoint: Endpoint, happen: Happen) -> None:
    happen(1)
    late = take(endpoint)
    [present] = take(endpoint)

    with locked("deliveries", present.claimed.id):
        assert record(late, OK) == []

    assert Attempt.of(present.claimed.id) == []


def test_an_outcome_of_an_endpoint_that_is_gone_is_recorded(endpoint: Endpoint, happen: Happen) -> None:
    happen(1)
    dispatches = take(endpoint)
    database.rows("DELETE FROM endpoints")

    assert record(dispatches, BROKEN) == []

    assert states() == ["cancelled"]


def test_claims_and_lane_changes_wait_for_no_lock(endpoint: Endpoint, happen: Happen) -> None:
    happen(2)
    set_failures(endpoint, 10)
    database.rows("UPDATE endpoints SET probe_at = now()")

    with locked("endpoints", endpoint.id):
        assert attempts.claim_restrained(lanes.FAST, {endpoint.id: 1})[0] == []
        lanes.slow_down([endpoint.id])
        lanes.speed_up([endpoint.id])

    assert len(attempts.claim_restrained(lanes.FAST, {endpoint.id: 1})[0]) == 1


def test_giving_up_a_delivery_without_a_body_waits_for_no_lock(
    endpoint: Endpoint, happen: Happen, monkeypatch: pytest.MonkeyPatch
) -> None:
    happen(1)
    [dispatch] = take(endpoint)

    with locked("deliveries", dispatch.claimed.id):
        attempts._give_up([dispatch.claimed])
    assert states() == ["pending"]

    attempts._give_up([dispatch.claimed])
    assert states() == ["failed"]


def test_the_desk_and_others_that_lock_the_same_rows_in_any_order_never_deadlock(
    api: Api, endpoint: Endpoint, happen: Happen
) -> None:
    other = Endpoint.get_by_id(make_endpoint(api.workspace_id, "https://other.example/")[0])
    happen(40)
    before = one("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")

    def send() -> None:
        for _ in range(15):
            later = [outcome(each, BROKEN) for to in (endpoint, other) for each in take(to, room=5)]
            while later:
                later = attempts.record(later)

    def change(order: Sequence[str]) -> None:
        for _ in range(300):  # not until all is sent: nothing would ever be if the rows were never free for long
            with database.transaction():
                for query in order:
                    database.rows(query)

    deliveries = "SELECT FROM deliveries ORDER BY id {} FOR NO KEY UPDATE SKIP LOCKED"
    endpoints = "UPDATE endpoints SET description = 'x' WHERE id = '{}'"
    orders = [
        [deliveries.format("DESC"), endpoints.format(endpoint.id)],
        [endpoints.format(other.id), deliveries.format("ASC")],
    ]

    results = in_threads([send, *(partial(change, order) for order in orders)])

    assert results == [None] * 3
    assert one("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()") == before


# Our own faults


def test_a_fault_of_ours_spends_no_attempt_and_is_tried_again_soon(endpoint: Endpoint, delivery: str) -> None:
    [dispatch] = take(endpoint)

    attempts.record([outcome(dispatch, FAULT, pause_seconds=8.0)])

    kept = Delivery.get_by_id(delivery)
    assert (kept.status, kept.attempts, kept.tries, Attempt.of(delivery)) == ("pending", 0, 0, [])
    assert (kept.last_error_code, kept.last_error, kept.last_status) == ("ours", FAULT.error, None)
    assert one("SELECT extract(epoch FROM next_attempt_at - now()) FROM deliveries") <= 8


def test_faults_of_ours_never_stop_or_probe_an_endpoint(endpoint: Endpoint, happen: Happen) -> None:
    happen(10)
    set_failures(endpoint, 49)

    record(take(endpoint), FAULT)

    stored = Endpoint.get_by_id(endpoint.id)
    assert (stored.state, stored.consecutive_failures, stored.probe_at) == ("active", 49, None)


def test_after_a_fault_of_ours_a_probe_is_made_again(endpoint: Endpoint, happen: Happen) -> None:
    happen(10)
    record(take(endpoint)[:5], BROKEN)
    [probe] = take(endpoint)
    assert probe.is_probe

    record([probe], FAULT)

    assert failures(endpoint) == 5
    assert len(take(endpoint)) == 1


def test_a_fault_of_ours_after_an_attempt_keeps_what_the_receiver_answered(endpoint: Endpoint, delivery: str) -> None:
    record(take(endpoint), BROKEN)
    record(take(endpoint), FAULT)

    kept = Delivery.get_by_id(delivery)
    assert (kept.attempts, kept.last_status, kept.last_error_code) == (1, 500, "ours")
    assert [(entry.status, entry.error_code) for entry in Attempt.of(delivery)] == [(500, "status")]


def test_a_fault_of_ours_at_an_endpoint_that_was_stopped_meanwhile_leaves_the_delivery_held(
    endpoint: Endpoint, happen: Happen
) -> None:
    happen(2)
    gone, fault = take(endpoint)

    record([gone], GONE)
    record([fault], FAULT)

    assert Delivery.get_by_id(fault.claimed.id).status == "held"


# What a claim costs


def test_a_claim_does_not_read_the_backlog_that_statistics_were_taken_of(endpoint: Endpoint, delivery: str) -> None:
    database.rows(
        """
        INSERT INTO deliveries (id, workspace_id, event_id, endpoint_id, kind)
        SELECT left(id, -5) || lpad(number::text, 5, '0'), workspace_id, event_id, endpoint_id, kind
        FROM (SELECT * FROM deliveries LIMIT 1) AS one CROSS JOIN generate_series(1, 30000) AS number
        """
    )
    database.rows("VACUUM ANALYZE deliveries")
    before = blocks_read("deliveries")

    assert len(attempts.claim(lanes.FAST, {endpoint.id: 10})) == 10

    assert blocks_read("deliveries") - before < 1_000

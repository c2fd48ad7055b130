"""Waking, with deliveries that wait for their retry."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg2
import pytest

from app import bells, mailbox
from app.config import settings
from app.database import rows, transaction
from app.domain.automations import http_requests
from app.domain.deliveries import attempts, lanes
from app.domain.triggers import run_states
from app.lib import ids
from app.mailbox import Mail, waking
from tests.cast import Api, all_of, make_endpoint, one
from tests.requesting import make_request


@pytest.fixture
def endpoint_id(api: Api) -> str:
    return make_endpoint(api.workspace_id, "https://shop.example/hooks")[0]


def wait_for(endpoint_id: str, *seconds: float) -> list[str]:
    """Deliveries to the endpoint whose next attempt is so many seconds from now; in the past where negative."""
    made = [(ids.new("dlv"), each) for each in seconds]
    for delivery_id, each in made:
        rows(
            """
            INSERT INTO deliveries (id, workspace_id, event_id, endpoint_id, kind, tries, due_at, next_attempt_at)
            SELECT %s, workspace_id, 'evt_1', id, 'contact.created', 1, NULL, now() + %s * interval '1 second'
            FROM endpoints WHERE id = %s
            """,
            (delivery_id, each, endpoint_id),
        )
    return [delivery_id for delivery_id, _ in made]


def due() -> list[str]:
    return all_of("SELECT id FROM deliveries WHERE due_at IS NOT NULL ORDER BY due_at")


def rung(lane: Mail) -> int:
    bells.flush(20)
    return int(bells.flags().llen(f"dramatiq:{lane.queue}"))


@contextmanager
def another(query: str) -> Iterator[None]:
    """Another process, in the middle of a transaction with this query."""
    connection = psycopg2.connect(settings().database_url)
    connection.cursor().execute(query)
    yield
    connection.rollback()
    connection.close()


def test_what_waits_is_no_mail(endpoint_id: str) -> None:
    wait_for(endpoint_id, 60, -60)

    assert attempts.claim(lanes.FAST, {endpoint_id: 10}) == []
    assert mailbox.overdue(lanes.FAST, 0, 10) == ([], "", {"deliveries": 0.0, "slow_deliveries": 0.0})


def test_what_falls_due_is_woken_with_the_time_that_it_waited_for(endpoint_id: str) -> None:
    with transaction():  # so that no time passes
        [over, _] = wait_for(endpoint_id, -0.5, 60)
        [(at,)] = rows("SELECT next_attempt_at FROM deliveries WHERE id = %s", (over,))

        assert waking.wake(lanes.WAITING) == [endpoint_id]

    assert rows("SELECT id, due_at, next_attempt_at FROM deliveries WHERE due_at IS NOT NULL") == [(over, at, None)]
    assert waking.wake(lanes.WAITING) == []


def test_what_is_woken_late_keeps_its_order_and_has_been_due_for_a_second_at_most(endpoint_id: str) -> None:
    with transaction():
        expected = wait_for(endpoint_id, -60, -1.5, -0.5)
        waking.wake(lanes.WAITING)

        assert due() == expected
        assert one("SELECT extract(epoch FROM now() - min(due_at))::float FROM deliveries") == 0.999999


def test_a_batch_is_the_earliest_of_what_fell_due(endpoint_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waking, "BATCH", 2)
    latest, first, second = wait_for(endpoint_id, -1, -3, -2)

    assert waking.wake(lanes.WAITING) == [endpoint_id] * 2
    assert due() == [first, second]

    assert waking.wake(lanes.WAITING) == [endpoint_id]
    assert due() == [first, second, latest]


def test_one_process_at_a_time_wakes(endpoint_id: str) -> None:
    wait_for(endpoint_id, -1)

    with another("SELECT pg_advisory_xact_lock(hashtextextended('waking deliveries', 0))"):
        assert waking.wake(lanes.WAITING) == []

    assert waking.wake(lanes.WAITING) == [endpoint_id]


def test_what_is_locked_is_left_for_the_next_time(endpoint_id: str) -> None:
    locked, free = wait_for(endpoint_id, -2, -1)

    with another(f"SELECT FROM deliveries WHERE id = '{locked}' FOR UPDATE"):
        waking.wake(lanes.WAITING)
        assert due() == [free]

    waking.wake(lanes.WAITING)
    assert set(due()) == {locked, free}


def test_endpoints_are_rung_for_once_in_the_lane_that_they_are_in(api: Api, endpoint_id: str) -> None:
    slow, _ = make_endpoint(api.workspace_id, "https://slow.example/hooks")
    lanes.slow_down([slow])
    wait_for(endpoint_id, -2, -1, 60)
    wait_for(slow, -1)
    rung(lanes.FAST)
    bells.flags().flushall()

    assert mailbox.wake_and_ring(lanes.WAITING) == 3

    assert (rung(lanes.FAST), rung(lanes.SLOW)) == (1, 1)


def test_of_several_kinds_those_whose_time_has_come_are_woken(api: Api, endpoint_id: str) -> None:
    _, request_id = make_request(api.workspace_id)
    rows("UPDATE run_requests SET due_at = NULL, next_attempt_at = now() - interval '1 second'")
    rows("UPDATE runs SET resume_at = now() + interval '1 minute'")
    wait_for(endpoint_id, -2, -1, 60)
    kinds = [lanes.WAITING, run_states.WAITING, http_requests.WAITING]

    assert mailbox.wake_all(*kinds) == 2

    assert len(due()) == 2
    assert all_of("SELECT id FROM run_requests WHERE due_at IS NOT NULL") == [request_id]
    assert one("SELECT count(*) FROM runs WHERE resume_at > now()") == 1
    assert (rung(lanes.FAST), rung(http_requests.MAIL)) == (1, 1)
    assert mailbox.wake_all(*kinds) == 0


def test_nobody_is_rung_for_while_all_wait(endpoint_id: str) -> None:
    wait_for(endpoint_id, 60)

    assert mailbox.wake_and_ring(lanes.WAITING) == 0

    assert rung(lanes.FAST) == 0
    assert one("SELECT count(*) FROM deliveries WHERE next_attempt_at > now()") == 1

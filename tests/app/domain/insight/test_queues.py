from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from app import database
from app.domain.insight import queues
from app.domain.insight.queues import Queue
from app.models.endpoints import Endpoint
from scheduler.timetable import Timetable
from tests.cast import Api
from tests.requesting import make_request

Happen = Callable[[int], None]


def sampled() -> dict[str, tuple[int, float]]:
    Timetable().run_due()
    return {name: (found[-1].depth, found[-1].oldest_seconds) for name, found in queues.samples(timedelta(1)).items()}


def depths(found: list[Queue]) -> dict[str, int]:
    return {queue.name: queue.depth for queue in found if queue.depth}


def test_empty_queues_are_sampled_too(empty: None) -> None:
    assert sampled() == dict.fromkeys(queues.NAMES.values(), (0, 0.0))


def test_what_is_due_is_counted_with_the_age_of_the_oldest(api: Api, endpoint: Endpoint, happen: Happen) -> None:
    happen(3)
    api.post("contacts", {"external_id": "late"})
    make_request(api.workspace_id)
    database.rows("UPDATE jobs SET due_at = now() - interval '90 seconds' WHERE due_at IS NOT NULL")
    database.rows("UPDATE deliveries SET due_at = now() - interval '60 seconds' WHERE endpoint_id = %s", (endpoint.id,))

    found = sampled()

    assert found["writes"] == (1, pytest.approx(90, abs=60))
    assert found["writes"][1] >= 90
    assert found["deliveries"][0] == 3
    assert found["deliveries"][1] >= 60
    assert found["requests"][0] == 1
    assert found["slow-deliveries"] == (0, 0)
    assert depths(queues.of_workspace(api.workspace_id)) == {"writes": 1, "deliveries": 3, "requests": 1}


def test_slow_endpoints_have_a_queue_of_their_own(api: Api, endpoint: Endpoint, happen: Happen) -> None:
    happen(2)
    database.rows("UPDATE endpoints SET slow_until = now() + interval '1 minute'")

    assert sampled()["slow-deliveries"][0] == 2
    assert depths(queues.of_workspace(api.workspace_id)) == {"slow-deliveries": 2}


def test_what_a_pause_of_an_endpoint_holds_back_does_not_wait(endpoint: Endpoint, happen: Happen) -> None:
    happen(1)
    database.rows("UPDATE deliveries SET due_at = now() - interval '1 hour'")
    database.rows("UPDATE endpoints SET probe_at = now() + interval '1 minute'")

    assert sampled()["deliveries"] == (0, 0)
    assert max(queue.oldest_seconds for queue in queues.of_workspace(endpoint.workspace_id)) == 0


def test_a_workspace_sees_only_what_is_its_own(others: Api, endpoint: Endpoint, happen: Happen) -> None:
    happen(2)
    others.post("contacts", {"external_id": "theirs"})

    assert depths(queues.of_workspace(others.workspace_id)) == {"writes": 1}
    assert depths(queues.of_workspace(endpoint.workspace_id)) == {"deliveries": 2}


def test_counting_stops_at_a_limit(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queues, "MOST_COUNTED", 2)
    for number in range(5):
        api.post("contacts", {"external_id": str(number)})

    assert depths(queues.of_workspace(api.workspace_id)) == {"writes": 3}

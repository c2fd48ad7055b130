from __future__ import annotations

import pytest

from app import database
from app.domain.deliveries import backlogs
from app.models.base import Count
from tests.cast import Api


@pytest.fixture
def endpoint_id(api: Api) -> str:
    return api.endpoint()


def fill(api: Api, endpoint_id: str, **numbers: int) -> None:
    """Makes so many deliveries of each status, in the order given; every second pending one waits for its retry."""
    base = 0
    for status, number in numbers.items():
        database.rows(
            """
            INSERT INTO deliveries (id, workspace_id, event_id, endpoint_id, kind, status, due_at, next_attempt_at)
            SELECT 'dlv_01' || lpad((%(base)s + n)::text, 24, '0'), %(workspace_id)s, 'evt_none', %(endpoint_id)s,
                'contact.created', %(status)s,
                CASE WHEN %(status)s = 'pending' AND n %% 2 = 1 THEN now() END,
                CASE WHEN %(status)s = 'pending' AND n %% 2 = 0 THEN now() END
            FROM generate_series(1, %(number)s) AS n
            """,
            {
                "base": base,
                "workspace_id": api.workspace_id,
                "endpoint_id": endpoint_id,
                "status": status,
                "number": number,
            },
        )
        base += number


def test_a_backlog_counts_by_what_is_waited_for(api: Api, endpoint_id: str) -> None:
    fill(api, endpoint_id, delivered=2, cancelled=1, failed=3, held=5, pending=4)
    fill_other = api.endpoint()

    backlog = backlogs.of(endpoint_id, 100)

    assert backlog == backlogs.Backlog(Count(4, False), Count(2, False), Count(5, False), Count(3, False))
    assert backlogs.of(fill_other, 100).waiting == Count(0, False)


def test_counts_have_a_cap(api: Api, endpoint_id: str) -> None:
    fill(api, endpoint_id, held=4, failed=8, pending=12)

    backlog = backlogs.of(endpoint_id, 10)

    assert backlog.waiting == Count(10, True)
    assert backlog.failed == Count(8, True)
    assert backlog.held.has_more


def test_the_newest_are_those_that_have_not_arrived(api: Api, endpoint_id: str) -> None:
    fill(api, endpoint_id, pending=2, failed=2, delivered=3, cancelled=1, held=1)

    assert [delivery.status for delivery in backlogs.newest(endpoint_id, 4)] == ["held", "failed", "failed", "pending"]

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from app import database, mailbox
from app.database import transaction
from app.domain.deliveries import attempts, lanes
from app.domain.deliveries.attempts import Dispatch
from app.models.endpoints import Endpoint
from tests.cast import Api, in_threads, one, rung_on
from tests.sending import BROKEN, OK, record

Happen = Callable[[int], None]


def limit(endpoint: Endpoint, number: int) -> None:
    Endpoint.update(max_per_second=number).where(Endpoint.id == endpoint.id).execute()


def claim(endpoint: Endpoint, room: int = 100) -> tuple[list[Dispatch], dict[str, float]]:
    return attempts.claim_restrained(lanes.FAST, {endpoint.id: room})


def let_pass(seconds: float) -> None:
    """Moves the endpoint's times back, as if its last claim were that many seconds ago."""
    database.rows("UPDATE endpoints SET paced_until = paced_until - %s * interval '1 second'", (seconds,))


def test_an_endpoint_with_a_limit_is_left_out_of_common_claims(endpoint: Endpoint, happen: Happen) -> None:
    happen(3)
    limit(endpoint, 1000)

    assert attempts.claim(lanes.FAST, {endpoint.id: 100}) == []


def test_an_endpoint_gets_no_more_than_its_limit_allows(endpoint: Endpoint, happen: Happen) -> None:
    happen(5)
    limit(endpoint, 1)

    batch, pauses = claim(endpoint)
    again, pauses_again = claim(endpoint)

    assert (len(batch), len(again)) == (1, 0)
    assert 0.8 < pauses_again[endpoint.id] <= pauses[endpoint.id] <= 1


def test_what_was_missed_is_made_up_for_a_tenth_of_a_second_at_most(endpoint: Endpoint, happen: Happen) -> None:
    happen(50)
    limit(endpoint, 100)
    first, _ = claim(endpoint)

    let_pass(3600)
    second, pauses = claim(endpoint)

    assert len(first) == len(second) == 11
    assert 0 < pauses[endpoint.id] <= 0.01


def test_a_small_delay_is_made_up_for_exactly(endpoint: Endpoint, happen: Happen) -> None:
    happen(50)
    limit(endpoint, 100)
    claim(endpoint)
    database.rows("UPDATE endpoints SET paced_until = now() - interval '0.05 seconds'")

    with transaction():  # in which the time stands still
        before = one("SELECT extract(epoch FROM paced_until)::float FROM endpoints")
        batch, _ = claim(endpoint)
        after = one("SELECT extract(epoch FROM paced_until)::float FROM endpoints")

    assert after - before == pytest.approx(len(batch) / 100, abs=1e-4)


def test_a_mailbox_that_is_empty_is_not_looked_into_again(endpoint: Endpoint, happen: Happen) -> None:
    happen(1)
    limit(endpoint, 1000)

    batch, pauses = claim(endpoint)

    assert (len(batch), pauses) == (1, {})


def test_a_claim_that_finds_nothing_uses_nothing_up(endpoint: Endpoint) -> None:
    limit(endpoint, 1)

    assert claim(endpoint) == ([], {})
    assert one("SELECT paced_until FROM endpoints") is None


def test_processes_that_claim_at_once_get_no_more_together(endpoint: Endpoint, happen: Happen) -> None:
    happen(40)
    limit(endpoint, 1)

    batches = in_threads([partial(claim, endpoint, 10) for _ in range(8)])

    assert sum(len(batch) for batch, _ in batches) == 1


def test_retries_and_probes_are_within_the_limit(endpoint: Endpoint, happen: Happen) -> None:
    happen(10)
    limit(endpoint, 1000)
    batch, _ = claim(endpoint, 5)
    record(batch, BROKEN)
    limit(endpoint, 1)
    database.rows("UPDATE endpoints SET probe_at = now(), paced_until = NULL")
    database.rows("UPDATE deliveries SET next_attempt_at = now() WHERE next_attempt_at IS NOT NULL")
    mailbox.wake_and_ring(lanes.WAITING)

    [probe], pauses = claim(endpoint)
    record([probe], OK)

    assert probe.is_probe
    assert 0 < pauses[endpoint.id] <= 1
    assert claim(endpoint)[0] == []


def test_a_probe_takes_up_the_limit_that_is_not_due_before_it(endpoint: Endpoint, happen: Happen) -> None:
    happen(10)
    limit(endpoint, 1)
    claim(endpoint)
    database.rows("UPDATE endpoints SET probe_at = now()")

    batch, pauses = claim(endpoint)

    assert batch == []
    assert 0 < pauses[endpoint.id] <= 1


def test_an_endpoint_that_somebody_has_locked_is_looked_at_again_soon(endpoint: Endpoint, happen: Happen) -> None:
    happen(3)
    limit(endpoint, 10)

    with transaction():
        database.rows("SELECT FROM endpoints FOR NO KEY UPDATE")
        [(batch, pauses)] = in_threads([partial(claim, endpoint)])

    assert (batch, pauses) == ([], {endpoint.id: 0.05})


def test_no_bell_rings_before_the_limit_allows_more(endpoint: Endpoint, happen: Happen) -> None:
    happen(5)
    rung_before = rung_on("deliveries")
    limit(endpoint, 1)
    claim(endpoint)

    lanes.ring([endpoint.id])
    assert rung_on("deliveries") == rung_before


def test_a_limit_that_is_taken_away_leaves_nothing_behind(endpoint: Endpoint, happen: Happen, api: Api) -> None:
    happen(5)
    limit(endpoint, 1)
    claim(endpoint)

    api.done(api.patch(f"webhooks/endpoints/{endpoint.id}", {"max_per_second": None}))

    assert len(attempts.claim(lanes.FAST, {endpoint.id: 100})) == 4

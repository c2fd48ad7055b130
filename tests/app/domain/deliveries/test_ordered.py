from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from app import bells, database, mailbox
from app.database import transaction
from app.domain import writes
from app.domain.deliveries import attempts, fan_out, lanes
from app.domain.deliveries.attempts import Dispatch
from app.models.endpoints import Endpoint
from tests.cast import Api, accept, all_of, apply, elsewhere, in_threads, one, rung_on, sweep
from tests.sending import BROKEN, FAULT, GONE, OK, record

Happen = Callable[[int], None]


@pytest.fixture(autouse=True)
def ordered(endpoint: Endpoint) -> None:
    set_order(endpoint, True)


def set_order(endpoint: Endpoint, wanted: bool) -> None:
    Endpoint.update(ordered=wanted).where(Endpoint.id == endpoint.id).execute()


def claim(endpoint: Endpoint) -> list[Dispatch]:
    return attempts.claim_restrained(lanes.FAST, {endpoint.id: 100})[0]


def claim_one(endpoint: Endpoint) -> str:
    [dispatch] = claim(endpoint)
    return dispatch.claimed.id


def deliver(endpoint: Endpoint) -> list[str]:
    """Delivers, one after another, what may go out; returns the identifiers in the order in which it went."""
    went = []
    while dispatches := claim(endpoint):
        record(dispatches, OK)
        went += [dispatch.claimed.id for dispatch in dispatches]
    return went


def fall_due() -> None:
    """Every retry falls due."""
    database.rows("UPDATE deliveries SET next_attempt_at = now() WHERE next_attempt_at IS NOT NULL")
    mailbox.wake_and_ring(lanes.WAITING)


def in_order() -> list[str]:
    return all_of("SELECT id FROM deliveries ORDER BY event_id, id")


def rung(endpoint: Endpoint) -> bool:
    """Whether a bell rings for the endpoint, after all others have been heard."""
    bells.flush(20)
    bells.flags().flushdb()
    lanes.ring([endpoint.id])
    return rung_on("deliveries") == [endpoint.id]


def test_deliveries_go_out_in_the_order_of_their_events(endpoint: Endpoint, happen: Happen) -> None:
    happen(5)
    database.rows("UPDATE deliveries SET due_at = now() - random() * interval '1 hour'")

    assert deliver(endpoint) == in_order()


def test_one_is_under_way_at_a_time(endpoint: Endpoint, happen: Happen) -> None:
    happen(5)

    assert len(claim(endpoint)) == 1
    assert claim(endpoint) == []
    assert attempts.claim(lanes.FAST, {endpoint.id: 100}) == []


def test_processes_that_claim_at_once_get_one_together(endpoint: Endpoint, happen: Happen) -> None:
    happen(10)

    batches = in_threads([partial(claim, endpoint) for _ in range(8)])

    assert [dispatch.claimed.id for batch in batches for dispatch in batch] == in_order()[:1]


@pytest.mark.parametrize("answer", [BROKEN, FAULT])
def test_the_retry_of_the_head_holds_back_the_rest(endpoint: Endpoint, happen: Happen, answer: attempts.Answer) -> None:
    happen(3)
    record(claim(endpoint), answer)

    assert claim(endpoint) == []
    assert not rung(endpoint)

    fall_due()
    assert rung(endpoint)
    assert deliver(endpoint) == in_order()


def test_when_the_head_has_finally_failed_the_next_goes(endpoint: Endpoint, happen: Happen) -> None:
    happen(3)
    database.rows("UPDATE deliveries SET tries = 6 WHERE id = (SELECT min(id) FROM deliveries)")

    record(claim(endpoint), BROKEN)

    assert all_of("SELECT status FROM deliveries ORDER BY id") == ["failed", "pending", "pending"]
    assert deliver(endpoint) == in_order()[1:]


def test_the_head_of_a_worker_that_died_goes_again_before_the_rest(endpoint: Endpoint, happen: Happen) -> None:
    happen(3)
    head = claim_one(endpoint)
    assert not rung(endpoint)

    database.rows("UPDATE deliveries SET leased_until = now() WHERE leased_until IS NOT NULL")

    assert rung(endpoint)
    assert deliver(endpoint) == in_order()
    assert in_order()[0] == head


def test_an_outcome_that_comes_late_changes_nothing(endpoint: Endpoint, happen: Happen) -> None:
    happen(2)
    late = claim(endpoint)
    database.rows("UPDATE deliveries SET leased_until = now() WHERE leased_until IS NOT NULL")
    again = claim(endpoint)

    record(late, OK)

    assert one("SELECT count(*) FROM deliveries WHERE status = 'delivered'") == 0
    assert claim(endpoint) == []
    record(again, OK)
    assert claim_one(endpoint) == in_order()[1]


def test_a_claim_that_began_before_another_takes_nothing(endpoint: Endpoint, happen: Happen) -> None:
    happen(2)

    with elsewhere(lambda: claim(endpoint)):
        # The other has the lock: this one does not wait, and looks again soon.
        assert attempts.claim_restrained(lanes.FAST, {endpoint.id: 1}) == ([], {endpoint.id: 0.05})


def test_order_asked_for_while_deliveries_wait_holds_for_them_too(endpoint: Endpoint, happen: Happen) -> None:
    set_order(endpoint, False)
    happen(2)
    first = attempts.claim(lanes.FAST, {endpoint.id: 2})
    record(first, BROKEN)
    happen(4)

    set_order(endpoint, True)
    assert claim(endpoint) == []
    fall_due()

    assert deliver(endpoint) == in_order()


def test_order_given_up_while_deliveries_wait_frees_them(endpoint: Endpoint, happen: Happen, api: Api) -> None:
    happen(6)
    record(claim(endpoint), BROKEN)

    api.done(api.patch(f"webhooks/endpoints/{endpoint.id}", {"ordered": False}))
    freed = attempts.claim(lanes.FAST, {endpoint.id: 100})
    record(freed, OK)
    fall_due()
    record(attempts.claim(lanes.FAST, {endpoint.id: 100}), OK)

    assert len(freed) == 5
    assert set(all_of("SELECT status FROM deliveries")) == {"delivered"}
    assert set(all_of("SELECT attempts FROM deliveries")) == {1, 2}


def test_released_deliveries_go_out_before_those_of_later_events(endpoint: Endpoint, happen: Happen, api: Api) -> None:
    happen(3)
    record(claim(endpoint), GONE)
    happen(2)
    sweep(endpoint.id)
    api.done(api.post(f"webhooks/endpoints/{endpoint.id}/enable", {"release_held": True}))
    happen(2)
    sweep(endpoint.id)

    assert deliver(endpoint) == in_order()[1:]


def test_a_failed_delivery_that_is_resent_goes_before_those_of_later_events(
    endpoint: Endpoint, happen: Happen, api: Api
) -> None:
    happen(4)
    database.rows("UPDATE deliveries SET tries = 6 WHERE id = (SELECT min(id) FROM deliveries)")
    record(claim(endpoint), BROKEN)
    under_way = claim(endpoint)

    api.done(api.post(f"webhooks/deliveries/{in_order()[0]}/resend"))
    assert claim(endpoint) == []
    record(under_way, OK)

    assert deliver(endpoint) == [in_order()[0], *in_order()[2:]]


def test_a_delivered_one_that_is_resent_goes_after_those_that_wait(
    endpoint: Endpoint, happen: Happen, api: Api
) -> None:
    happen(3)
    record(claim(endpoint), OK)

    job = api.done(api.post(f"webhooks/deliveries/{in_order()[0]}/resend"))

    assert deliver(endpoint)[-1] == job["resource"]["id"]
    assert one("SELECT count(*) FROM deliveries WHERE status = 'delivered'") == 4


def test_an_endpoint_that_is_probed_gets_its_head(endpoint: Endpoint, happen: Happen) -> None:
    happen(3)
    record(claim(endpoint), BROKEN)
    database.rows("UPDATE endpoints SET consecutive_failures = 7, probe_at = now()")
    assert claim(endpoint) == []
    fall_due()

    [probe] = claim(endpoint)
    record([probe], OK)

    assert (probe.is_probe, probe.claimed.id) == (True, in_order()[0])
    assert deliver(endpoint) == in_order()[1:]


def test_order_and_a_limit_hold_together(endpoint: Endpoint, happen: Happen) -> None:
    happen(3)
    Endpoint.update(max_per_second=1).where(Endpoint.id == endpoint.id).execute()
    record(claim(endpoint), OK)

    batch, pauses = attempts.claim_restrained(lanes.FAST, {endpoint.id: 100})
    database.rows("UPDATE endpoints SET paced_until = now()")

    assert batch == []
    assert 0 < pauses[endpoint.id] <= 1
    assert claim_one(endpoint) == in_order()[1]


def test_in_the_slow_lane_there_is_the_same_order(endpoint: Endpoint, happen: Happen) -> None:
    happen(2)
    lanes.slow_down([endpoint.id])

    assert claim(endpoint) == []
    [dispatch], _ = attempts.claim_restrained(lanes.SLOW, {endpoint.id: 100})
    assert dispatch.claimed.id == in_order()[0]


def test_a_small_event_does_not_overtake_one_whose_deliveries_are_made_later(
    endpoint: Endpoint, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(fan_out, "PART", 0)
        accept(api.workspace_id, "contacts.upsert", {"external_id": "large"})
        writes.work(api.workspace_id)
    accept(api.workspace_id, "contacts.upsert", {"external_id": "small"})
    writes.work(api.workspace_id)
    assert one("SELECT count(*) FROM deliveries") == 0

    apply(api.workspace_id)

    assert all_of("SELECT event_id FROM deliveries ORDER BY id") == all_of("SELECT id FROM events ORDER BY id")
    assert len(deliver(endpoint)) == 2


def test_events_wait_for_no_others_where_nobody_wants_order(
    endpoint: Endpoint, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_order(endpoint, False)
    with monkeypatch.context() as patched:
        patched.setattr(fan_out, "PART", 0)
        accept(api.workspace_id, "contacts.upsert", {"external_id": "large"})
        writes.work(api.workspace_id)

    accept(api.workspace_id, "contacts.upsert", {"external_id": "small"})
    writes.work(api.workspace_id)

    assert one("SELECT count(*) FROM deliveries") == 1


def test_a_delivery_that_somebody_has_locked_holds_back_the_rest(endpoint: Endpoint, happen: Happen) -> None:
    happen(3)

    with transaction():
        database.rows("SELECT FROM deliveries ORDER BY id LIMIT 1 FOR NO KEY UPDATE")
        [batch] = in_threads([partial(claim, endpoint)])

    assert batch == []

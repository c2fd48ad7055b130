from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from app import bells, database, mailbox
from app.domain.deliveries import attempts, lanes
from app.domain.webhooks import catalogue
from app.models.deliveries import Delivery
from app.models.endpoints import Endpoint
from tests.cast import Api, event_bodies, in_threads, make_endpoint, one
from tests.sending import BROKEN, GONE, OK, attempt, failures, record, set_failures, states, take

Happen = Callable[[int], None]


def pause(endpoint: Endpoint) -> float:
    """The seconds to the next probe."""
    return float(one("SELECT extract(epoch FROM probe_at - now()) FROM endpoints WHERE id = %s", endpoint.id))


def is_probed(endpoint: Endpoint) -> bool:
    return bool(one("SELECT probe_at IS NOT NULL FROM endpoints WHERE id = %s", endpoint.id))


def begin_probing(endpoint: Endpoint) -> None:
    """Five attempts in a row fail, and the next probe is due."""
    record(take(endpoint, room=5), BROKEN)
    assert is_probed(endpoint)
    database.rows("UPDATE endpoints SET probe_at = now()")
    database.rows("UPDATE deliveries SET next_attempt_at = now() WHERE next_attempt_at IS NOT NULL")
    mailbox.wake_and_ring(lanes.WAITING)


def test_an_endpoint_is_probed_from_its_fifth_failure_in_a_row(endpoint: Endpoint, happen: Happen) -> None:
    happen(10)
    dispatches = take(endpoint)

    record(dispatches[:4], BROKEN)
    assert not is_probed(endpoint)
    record(dispatches[4:5], BROKEN)

    assert is_probed(endpoint)


def test_an_endpoint_that_is_probed_gets_no_other_attempts(endpoint: Endpoint, happen: Happen) -> None:
    happen(10)
    begin_probing(endpoint)

    assert attempts.claim(lanes.FAST, {endpoint.id: 100}) == []

    [probe] = attempts.claim_restrained(lanes.FAST, {endpoint.id: 1})[0]
    assert probe.is_probe


def test_over_all_processes_one_probe_is_under_way(endpoint: Endpoint, happen: Happen) -> None:
    happen(20)
    begin_probing(endpoint)

    batches = in_threads([partial(attempts.claim_restrained, lanes.FAST, {endpoint.id: 1}) for _ in range(8)])

    assert sum(len(batch) for batch, _ in batches) == 1
    assert attempts.claim_restrained(lanes.FAST, {endpoint.id: 1})[0] == []


def test_a_probe_takes_the_delivery_that_has_been_due_for_longest(endpoint: Endpoint, happen: Happen) -> None:
    happen(10)
    begin_probing(endpoint)
    oldest = one("SELECT max(id) FROM deliveries")
    database.rows("UPDATE deliveries SET due_at = now() - interval '1 hour' WHERE id = %s", (oldest,))

    [probe] = attempts.claim_restrained(lanes.FAST, {endpoint.id: 1})[0]

    assert probe.claimed.id == oldest


def test_the_probe_of_a_worker_that_died_is_made_again_when_its_lease_ends(endpoint: Endpoint, happen: Happen) -> None:
    happen(5)
    begin_probing(endpoint)
    attempts.claim_restrained(lanes.FAST, {endpoint.id: 1})[0]
    assert abs(pause(endpoint) - lanes.lease_seconds()) < 5

    database.rows("UPDATE endpoints SET probe_at = now()")

    assert len(attempts.claim_restrained(lanes.FAST, {endpoint.id: 1})[0]) == 1


def test_a_probe_goes_out_in_the_lane_of_its_endpoint_alone(endpoint: Endpoint, happen: Happen) -> None:
    happen(5)
    begin_probing(endpoint)
    lanes.slow_down([endpoint.id])

    assert attempts.claim_restrained(lanes.FAST, {endpoint.id: 1})[0] == []

    assert len(attempts.claim_restrained(lanes.SLOW, {endpoint.id: 1})[0]) == 1


def fail_for(endpoint: Endpoint, seconds: float) -> None:
    """As if the endpoint had failed for so long already; then its next probe fails, too."""
    query = "UPDATE endpoints SET failing_since = now() - %s * interval '1 second' WHERE id = %s"
    database.rows(query, (seconds, endpoint.id))
    record(take(endpoint), BROKEN)


@pytest.mark.parametrize(
    ("number", "outage", "expected"), [(6, 0, 1.5), (40, 60, 12), (6, 1_800, 360), (40, 1_800, 360), (20, 40_000, 900)]
)
def test_the_pause_between_probes_is_a_fifth_of_the_outage_however_many_failed(
    endpoint: Endpoint, happen: Happen, number: int, outage: float, expected: float
) -> None:
    happen(5)
    begin_probing(endpoint)
    set_failures(endpoint, number)

    fail_for(endpoint, outage)

    assert expected - 1 < pause(endpoint) <= expected + 1


def test_events_and_resends_that_happen_meanwhile_bring_no_probe_forward(
    api: Api, endpoint: Endpoint, happen: Happen
) -> None:
    happen(5)
    begin_probing(endpoint)
    fail_for(endpoint, 3_000)
    before = Endpoint.get_by_id(endpoint.id).probe_at

    happen(5)
    late = one("SELECT id FROM deliveries WHERE next_attempt_at IS NOT NULL LIMIT 1")
    api.done(api.post(f"webhooks/deliveries/{late}/resend"))

    assert Endpoint.get_by_id(endpoint.id).probe_at == before
    assert attempts.claim_restrained(lanes.FAST, {endpoint.id: 100})[0] == []


def test_fifty_failed_attempts_take_hours(endpoint: Endpoint, happen: Happen) -> None:
    happen(12)
    begin_probing(endpoint)
    outage = 0.0

    for _ in range(44):
        fail_for(endpoint, outage)
        assert Endpoint.get_by_id(endpoint.id).state == "active"
        outage += pause(endpoint)

    fail_for(endpoint, outage)
    assert Endpoint.get_by_id(endpoint.id).state == "stopped"
    assert 2 * 3600 < outage < 3 * 3600


def test_an_outage_begins_with_the_first_failure_after_a_success(endpoint: Endpoint, happen: Happen) -> None:
    happen(20)
    attempt(endpoint, BROKEN)
    fail_for(endpoint, 3_000)
    attempt(endpoint, OK)

    attempt(endpoint, BROKEN)

    assert is_probed(endpoint)
    assert pause(endpoint) < 2


def test_a_probe_that_succeeds_lets_everything_go_out_and_rings_at_once(endpoint: Endpoint, happen: Happen) -> None:
    happen(20)
    begin_probing(endpoint)
    [probe] = attempts.claim_restrained(lanes.FAST, {endpoint.id: 1})[0]
    bells.flush(20)
    bells.flags().flushall()

    record([probe], OK)

    assert (failures(endpoint), is_probed(endpoint)) == (0, False)
    bells.flush(20)
    assert bells.flags().llen(f"dramatiq:{lanes.FAST.queue}") == 1
    assert len(attempts.claim(lanes.FAST, {endpoint.id: 100})) == 19


def test_a_success_among_failures_ends_the_probing_too(endpoint: Endpoint, happen: Happen) -> None:
    happen(10)
    late = take(endpoint, room=2)
    failing = attempts.claim(lanes.FAST, {endpoint.id: 5})
    record(failing, BROKEN)
    assert is_probed(endpoint)

    record(late[:1], BROKEN)
    assert is_probed(endpoint)
    record(late[1:], OK)

    assert (failures(endpoint), is_probed(endpoint)) == (0, False)


def test_failures_that_were_under_way_when_the_probing_began_are_not_counted(
    endpoint: Endpoint, happen: Happen
) -> None:
    happen(100)
    dispatches = take(endpoint)

    record(dispatches[:60], BROKEN)
    record(dispatches[60:], BROKEN)

    stored = Endpoint.get_by_id(endpoint.id)
    assert (stored.state, stored.consecutive_failures) == ("active", 5)
    assert one("SELECT count(*) FROM attempts") == 100


def test_deliveries_that_wait_for_a_probe_spend_no_attempt(endpoint: Endpoint, happen: Happen) -> None:
    happen(10)
    begin_probing(endpoint)

    record(take(endpoint), BROKEN)

    assert one("SELECT count(*) FROM deliveries WHERE status = 'pending' AND attempts = 0") >= 4
    assert set(states()) == {"pending"}


def test_a_dead_endpoint_stops_when_fifty_attempts_in_a_row_have_failed(endpoint: Endpoint, happen: Happen) -> None:
    happen(60)
    begin_probing(endpoint)

    for _ in range(45):
        [probe] = take(endpoint)
        record([probe], BROKEN)

    stored = Endpoint.get_by_id(endpoint.id)
    assert (stored.state, stored.consecutive_failures, stored.probe_at) == ("stopped", 50, None)
    assert one("SELECT count(*) FROM attempts") == 50


def test_410_stops_an_endpoint_at_once_also_when_the_attempt_was_no_probe(endpoint: Endpoint, happen: Happen) -> None:
    happen(10)
    late, *others = take(endpoint, room=6)
    record(others, BROKEN)

    record([late], GONE)

    assert Endpoint.get_by_id(endpoint.id).state == "stopped"


def test_an_endpoint_that_is_enabled_is_not_probed_any_more(api: Api, endpoint: Endpoint, happen: Happen) -> None:
    happen(10)
    begin_probing(endpoint)

    api.done(api.post(f"webhooks/endpoints/{endpoint.id}/enable"))

    assert (failures(endpoint), is_probed(endpoint)) == (0, False)


def test_without_a_pause_every_failure_counts_and_nobody_is_probed(
    without_probing: None, endpoint: Endpoint, happen: Happen
) -> None:
    happen(60)
    dispatches = take(endpoint)

    record(dispatches[:49], BROKEN)
    assert not is_probed(endpoint)
    record(dispatches[49:], BROKEN)

    stored = Endpoint.get_by_id(endpoint.id)
    assert (stored.state, stored.consecutive_failures) == ("stopped", 50)


def test_an_endpoint_whose_next_probe_is_not_due_is_not_rung_for(endpoint: Endpoint, happen: Happen) -> None:
    happen(10)
    attempt(endpoint, BROKEN)
    bells.flush(20)
    bells.flags().flushall()

    lanes.ring([endpoint.id])
    bells.flush(20)
    assert bells.flags().llen(f"dramatiq:{lanes.FAST.queue}") == 0

    database.rows("UPDATE endpoints SET probe_at = now()")
    lanes.ring([endpoint.id])
    bells.flush(20)
    assert bells.flags().llen(f"dramatiq:{lanes.FAST.queue}") == 1


def test_what_waits_for_a_probe_does_not_look_as_if_workers_were_missing(endpoint: Endpoint, happen: Happen) -> None:
    happen(10)
    begin_probing(endpoint)
    database.rows("UPDATE deliveries SET due_at = now() - interval '5 minutes' WHERE due_at IS NOT NULL")
    database.rows("UPDATE endpoints SET probe_at = now() + interval '10 seconds'")

    owners, _, oldest_seconds = mailbox.overdue(lanes.FAST, 1, 100)
    assert (owners, oldest_seconds) == ([endpoint.id], {"deliveries": 0, "slow_deliveries": 0})

    database.rows("UPDATE endpoints SET probe_at = now() - interval '1 minute'")
    assert 60 <= mailbox.overdue(lanes.FAST, 1, 100)[2]["deliveries"] < 120


def test_the_outcome_of_a_probe_whose_claim_has_passed_on_changes_nothing(endpoint: Endpoint, happen: Happen) -> None:
    happen(5)
    begin_probing(endpoint)
    [late] = attempts.claim_restrained(lanes.FAST, {endpoint.id: 1})[0]
    [present] = take(endpoint)
    assert present.claimed.claim > late.claimed.claim or present.claimed.id != late.claimed.id

    database.rows("UPDATE deliveries SET claim = claim + 1 WHERE id = %s", (late.claimed.id,))
    record([late], BROKEN)

    assert failures(endpoint) == 5
    assert Delivery.get_by_id(late.claimed.id).attempts == 1


# The event


def stopped_events(workspace_id: str) -> list[dict[str, Any]]:
    return [body for body in event_bodies(workspace_id) if body["kind"] == "endpoint.stopped"]


def test_a_stop_is_reported_to_the_other_endpoints_that_want_it(
    api: Api, endpoint: Endpoint, happen: Happen, without_probing: None
) -> None:
    Endpoint.update(events=["*"]).execute()
    wanting = make_endpoint(api.workspace_id, "https://ops.example/", ["endpoint.stopped"])[0]
    make_endpoint(api.workspace_id, "https://crm.example/", ["tag.added"])
    happen(12)
    set_failures(endpoint, 49)
    [last, *_] = take(endpoint)

    record([last], BROKEN)

    [body] = stopped_events(api.workspace_id)
    stored = Endpoint.get_by_id(endpoint.id)
    assert body["data"]["endpoint"] == {
        "id": endpoint.id,
        "address": endpoint.address,
        "stop_reason": stored.stop_reason,
        "stopped_at": body["data"]["endpoint"]["stopped_at"],
    }
    assert body["data"]["held_deliveries"] == 12
    [(to, status)] = database.rows("SELECT endpoint_id, status FROM deliveries WHERE kind = 'endpoint.stopped'")
    assert (to, status) == (wanting, "pending")


def test_a_stop_by_410_is_reported_too(api: Api, endpoint: Endpoint, happen: Happen) -> None:
    happen(1)

    record(take(endpoint), GONE)

    [body] = stopped_events(api.workspace_id)
    assert body["data"]["endpoint"]["stop_reason"] == "The receiver answered 410 Gone."
    assert body["data"]["held_deliveries"] == 0


def test_what_is_counted_of_held_deliveries_has_a_limit(
    api: Api, endpoint: Endpoint, happen: Happen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.domain.deliveries.stops.MOST_COUNTED", 3)
    happen(6)

    record(take(endpoint, room=1), GONE)

    assert stopped_events(api.workspace_id)[0]["data"]["held_deliveries"] == 3


def test_the_report_has_the_shape_of_its_sample(api: Api, endpoint: Endpoint, happen: Happen) -> None:
    happen(1)
    record(take(endpoint), GONE)

    [body] = stopped_events(api.workspace_id)
    sample = next(kind["sample"] for kind in catalogue.represent(api.workspace_id) if kind["kind"] == body["kind"])

    assert body["data"].keys() == sample["data"].keys()
    assert body["data"]["endpoint"].keys() == sample["data"]["endpoint"].keys()


def test_a_stop_that_is_rolled_back_is_not_reported(
    api: Api, endpoint: Endpoint, happen: Happen, monkeypatch: pytest.MonkeyPatch
) -> None:
    happen(1)
    dispatches = take(endpoint)
    with monkeypatch.context() as broken:
        broken.setattr(Endpoint, "save", lambda *_, **__: {}["missing"])
        with pytest.raises(KeyError):
            record(dispatches, GONE)

    assert stopped_events(api.workspace_id) == []
    assert Endpoint.get_by_id(endpoint.id).state == "active"

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client import REGISTRY

from app import bells, database
from app.domain.deliveries import attempts, lanes
from app.domain.deliveries.deliveries import BODY_GONE
from app.domain.webhooks.endpoints import seal
from app.lib import clock
from app.mailbox import Mail
from app.models.deliveries import Attempt, Delivery
from app.models.endpoints import Endpoint
from app.outbound import Answer, answered
from tests.cast import Api, all_of, make_endpoint, one
from tests.sending import BROKEN, GONE, OK, SILENT, attempt, failures, outcome, set_failures, states, take
from tests.stack.signatures import is_genuine

ADDRESS = "https://shop.example/hooks"


def seconds_to_next(delivery: str) -> float:
    return float(one("SELECT extract(epoch FROM next_attempt_at - now()) FROM deliveries WHERE id = %s", delivery))


# What is sent


def test_a_dispatch_has_all_that_an_attempt_needs(api: Api) -> None:
    endpoint_id, secret = make_endpoint(api.workspace_id, ADDRESS)
    answer = api.post("contacts", {"email": "ada@example.com"}, headers={"X-Request-Id": "mine"})
    api.done(answer)

    [dispatch] = attempts.claim(lanes.FAST, {endpoint_id: 10})

    assert (dispatch.address, dispatch.secrets, dispatch.trace_id) == (ADDRESS, (secret,), "mine")
    assert dispatch.claimed.carried.tries == 0
    assert dispatch.body == bytes(one("SELECT body FROM events"))


def test_the_headers_of_an_attempt_are_signed_at_its_time(api: Api) -> None:
    endpoint_id, secret = make_endpoint(api.workspace_id, ADDRESS)
    api.contact(email="ada@example.com")
    [dispatch] = attempts.claim(lanes.FAST, {endpoint_id: 10})

    with clock.moved_by(hours=2):
        headers = dispatch.headers()
        sent_at = clock.now().timestamp()

    assert headers["X-Service-Delivery"] == one("SELECT id FROM deliveries")
    assert headers["Content-Type"] == "application/json"
    assert is_genuine(secret, headers["X-Service-Signature"], dispatch.body, sent_at)
    assert not is_genuine(secret, headers["X-Service-Signature"], dispatch.body, sent_at + 301)


@pytest.mark.parametrize(("until", "keys"), [("1 hour", 2), ("-1 hour", 1)], ids=["within 24 hours", "afterwards"])
def test_after_a_rotation_both_secrets_sign_for_a_while(api: Api, until: str, keys: int) -> None:
    endpoint_id, secret = make_endpoint(api.workspace_id, ADDRESS)
    Endpoint.update(previous_secret=seal("whsec_before").encode()).execute()
    database.rows("UPDATE endpoints SET previous_secret_until = now() + %s::interval", (until,))
    api.contact(email="ada@example.com")

    [dispatch] = attempts.claim(lanes.FAST, {endpoint_id: 10})

    assert dispatch.secrets == (secret, "whsec_before")[:keys]
    assert dispatch.headers()["X-Service-Signature"].count("v1=") == keys


# What becomes of it


@pytest.mark.parametrize(
    ("status", "wished", "seconds"),
    [(429, "1200", 1200), (503, "1200", 1200), (429, "5", 60), (503, "86400", 3600), (500, "1200", 60)],
    ids=["too many requests", "unavailable", "never earlier", "an hour at most", "of no other status"],
)
def test_a_receiver_puts_the_next_attempt_off(api: Api, status: int, wished: str, seconds: int) -> None:
    endpoint_id, _ = make_endpoint(api.workspace_id, ADDRESS)
    api.contact(email="ada@example.com")

    attempt(Endpoint.get_by_id(endpoint_id), answered(status, retry_after=wished))

    assert seconds - 30 < seconds_to_next(one("SELECT id FROM deliveries")) <= seconds


def test_a_success_ends_a_delivery(endpoint: Endpoint, delivery: str) -> None:
    attempt(endpoint, OK)

    kept = Delivery.get_by_id(delivery)
    assert (kept.status, kept.attempts, kept.due_at, kept.last_error) == ("delivered", 1, None, None)
    assert kept.delivered_at is not None
    assert take(endpoint) == []


def test_each_failure_waits_longer_and_the_sixth_is_the_last(endpoint: Endpoint, delivery: str) -> None:
    waits = []
    for _ in range(5):
        attempt(endpoint, BROKEN)
        assert states() == ["pending"]
        waits.append(seconds_to_next(delivery))

    attempt(endpoint, BROKEN)

    schedule = [60, 300, 1800, 7200, 43200]
    assert [0 <= delay - wait < 30 for delay, wait in zip(schedule, waits, strict=True)] == [True] * 5
    kept = Delivery.get_by_id(delivery)
    assert (kept.status, kept.attempts, kept.due_at) == ("failed", 6, None)
    assert take(endpoint) == []


def test_every_attempt_is_logged(endpoint: Endpoint, delivery: str) -> None:
    attempt(endpoint, BROKEN)
    attempt(endpoint, SILENT)
    attempt(endpoint, OK)

    log = Attempt.of(delivery)
    assert [(entry.number, entry.status, entry.error, entry.duration_ms) for entry in log] == [
        (1, 500, BROKEN.error, 7),
        (2, None, SILENT.error, 10_000),
        (3, 204, None, 12),
    ]
    assert [entry.response_body for entry in log] == ["oops", "", ""]
    assert {entry.trigger for entry in log} == {"automatic"}


@pytest.mark.parametrize(
    ("body", "kept"), [(b"a\0b", "a\ufffdb"), (b"\xff\xfe", "\ufffd\ufffd"), ("ä".encode(), "ä")], ids=str
)
def test_an_answer_of_any_bytes_is_kept_as_text(endpoint: Endpoint, delivery: str, body: bytes, kept: str) -> None:
    attempt(endpoint, replace(OK, body=body))

    assert Attempt.of(delivery)[0].response_body == kept


def test_a_success_after_failures_forgets_their_error(endpoint: Endpoint, delivery: str) -> None:
    attempt(endpoint, BROKEN)
    assert Delivery.get_by_id(delivery).last_error == BROKEN.error

    attempt(endpoint, OK)

    assert Delivery.get_by_id(delivery).last_error is None


# Fences


def test_an_outcome_of_a_claim_that_has_passed_on_changes_nothing(endpoint: Endpoint, delivery: str) -> None:
    [late] = take(endpoint)
    [present] = take(endpoint)
    before = Delivery.get_by_id(delivery).__data__

    attempts.record([outcome(late, BROKEN)])

    assert Delivery.get_by_id(delivery).__data__ == before
    assert Attempt.of(delivery) == []
    assert present.claimed.claim > late.claimed.claim


def test_an_outcome_of_a_claim_that_has_passed_on_is_no_failure_of_the_endpoint(
    endpoint: Endpoint, delivery: str
) -> None:
    [late] = take(endpoint)
    take(endpoint)

    attempts.record([outcome(late, BROKEN)])

    assert failures(endpoint) == 0


def test_an_outcome_that_is_recorded_twice_counts_once(endpoint: Endpoint, delivery: str) -> None:
    [dispatch] = take(endpoint)
    same = outcome(dispatch, BROKEN)

    attempts.record([same])
    attempts.record([same])

    assert Delivery.get_by_id(delivery).attempts == 1
    assert len(Attempt.of(delivery)) == 1


def test_an_outcome_that_is_recorded_twice_is_one_failure_of_the_endpoint(endpoint: Endpoint, delivery: str) -> None:
    [dispatch] = take(endpoint)
    same = outcome(dispatch, BROKEN)

    attempts.record([same])
    attempts.record([same])

    assert failures(endpoint) == 1


def test_a_success_that_is_recorded_late_does_not_undo_a_failure(endpoint: Endpoint, delivery: str) -> None:
    [late] = take(endpoint)
    [present] = take(endpoint)

    attempts.record([outcome(present, BROKEN), outcome(late, OK)])

    assert states() == ["pending"]


# The endpoint's count


def test_failures_in_a_row_are_counted_over_all_deliveries(endpoint: Endpoint, happen: Callable[[int], None]) -> None:
    happen(3)

    attempt(endpoint, BROKEN)

    assert failures(endpoint) == 3


def test_a_success_sets_the_count_to_nothing(endpoint: Endpoint, delivery: str) -> None:
    set_failures(endpoint, 49)

    attempt(endpoint, OK)

    assert failures(endpoint) == 0


def test_outcomes_of_one_batch_count_in_their_order(endpoint: Endpoint, happen: Callable[[int], None]) -> None:
    happen(4)
    dispatches = take(endpoint)

    attempts.record(
        [outcome(each, answer) for each, answer in zip(dispatches, [BROKEN, OK, BROKEN, BROKEN], strict=True)]
    )

    assert failures(endpoint) == 2


def test_a_success_of_a_healthy_endpoint_does_not_touch_its_row(
    endpoint: Endpoint, delivery: str, happen: Callable[[int], None]
) -> None:
    attempt(endpoint, OK)
    happen(1)
    before = one("SELECT xmin::text FROM endpoints WHERE id = %s", endpoint.id)

    attempt(endpoint, OK)

    assert one("SELECT xmin::text FROM endpoints WHERE id = %s", endpoint.id) == before


def test_the_fiftieth_failure_in_a_row_stops_the_endpoint(endpoint: Endpoint, happen: Callable[[int], None]) -> None:
    happen(50)
    for _ in range(45):  # all at once until it is probed, then one by one
        attempt(endpoint, BROKEN)
    assert Endpoint.get_by_id(endpoint.id).state == "active"

    attempt(endpoint, SILENT)

    stopped = Endpoint.get_by_id(endpoint.id)
    assert (stopped.state, stopped.consecutive_failures) == ("stopped", 50)
    assert "50" in stopped.stop_reason
    assert str(SILENT.error) in stopped.stop_reason
    assert abs((clock.now() - stopped.stopped_at).total_seconds()) < 60


def test_the_reason_of_a_stop_does_not_repeat_where_a_redirect_led(endpoint: Endpoint, delivery: str) -> None:
    """That may be made of what was sent, and the reason stays when the contact is erased."""
    set_failures(endpoint, 49)

    attempt(endpoint, answered(302, b"", 3, target="https://shop.example/ada"))

    reason = Endpoint.get_by_id(endpoint.id).stop_reason
    assert reason == "50 attempts in a row failed. The last: Redirects are not followed (302)."


def test_an_endpoint_that_stops_has_what_is_on_its_way_held(endpoint: Endpoint, happen: Callable[[int], None]) -> None:
    happen(5)
    set_failures(endpoint, 49)
    [first] = take(endpoint, room=1)

    attempts.record([outcome(first, BROKEN)])

    assert all_of("SELECT action FROM sweeps WHERE endpoint_id = %s", endpoint.id) == ["hold"]
    assert take(endpoint) == []


def test_an_attempt_under_way_when_the_endpoint_stops_is_still_recorded(
    endpoint: Endpoint, happen: Callable[[int], None]
) -> None:
    happen(3)
    set_failures(endpoint, 49)
    stopping, failing, succeeding = take(endpoint)

    attempts.record([outcome(stopping, BROKEN)])
    attempts.record([outcome(failing, BROKEN), outcome(succeeding, OK)])

    assert Delivery.get_by_id(failing.claimed.id).status == "held"
    assert Delivery.get_by_id(failing.claimed.id).due_at is None
    assert Delivery.get_by_id(succeeding.claimed.id).status == "delivered"
    stopped = Endpoint.get_by_id(endpoint.id)
    assert (stopped.state, stopped.consecutive_failures) == ("stopped", 50)


def test_410_fails_the_delivery_and_stops_the_endpoint(endpoint: Endpoint, happen: Callable[[int], None]) -> None:
    happen(2)
    [gone] = take(endpoint, room=1)

    attempts.record([outcome(gone, GONE)])

    assert Delivery.get_by_id(gone.claimed.id).status == "failed"
    stopped = Endpoint.get_by_id(endpoint.id)
    assert stopped.state == "stopped"
    assert "410" in stopped.stop_reason


# Lanes


def test_a_slow_endpoint_is_served_in_its_own_lane_alone(endpoint: Endpoint, delivery: str) -> None:
    lanes.slow_down([endpoint.id])
    lanes.ring([endpoint.id])
    assert attempts.claim(lanes.FAST, {endpoint.id: 10}) == []
    assert lane(lanes.SLOW) == 1

    lanes.speed_up([endpoint.id])

    assert attempts.claim(lanes.SLOW, {endpoint.id: 10}) == []
    assert len(attempts.claim(lanes.FAST, {endpoint.id: 10})) == 1


def test_slowness_passes(endpoint: Endpoint, delivery: str) -> None:
    lanes.slow_down([endpoint.id])
    database.rows("UPDATE endpoints SET slow_until = now()")

    assert len(attempts.claim(lanes.FAST, {endpoint.id: 10})) == 1


def lane(mail: Mail) -> int:
    """How many bells wait there."""
    bells.flush(20)
    return int(bells.flags().llen(f"dramatiq:{mail.queue}"))


# Bodies


def test_what_has_no_body_any_more_fails_and_says_so(endpoint: Endpoint, delivery: str) -> None:
    database.rows("DELETE FROM events")

    assert take(endpoint) == []

    kept = Delivery.get_by_id(delivery)
    assert (kept.status, kept.due_at, kept.attempts) == ("failed", None, 0)
    assert kept.last_error == BODY_GONE


def test_a_stopped_endpoint_is_not_counted_further(endpoint: Endpoint, happen: Callable[[int], None]) -> None:
    happen(3)
    set_failures(endpoint, 49)
    first, second, third = take(endpoint)

    attempts.record([outcome(first, BROKEN)])
    attempts.record([outcome(second, BROKEN), outcome(third, GONE)])

    stopped = Endpoint.get_by_id(endpoint.id)
    assert stopped.consecutive_failures == 50
    assert "50" in stopped.stop_reason


def test_another_endpoint_is_not_stopped_with_it(api: Api, endpoint: Endpoint) -> None:
    other, _ = make_endpoint(api.workspace_id, "https://other.example/", ["contact.created"])
    api.contact(external_id="1")

    attempt(endpoint, GONE)

    assert Endpoint.get_by_id(other).state == "active"
    assert all_of("SELECT status FROM deliveries WHERE endpoint_id = %s", other) == ["pending"]


# Deleted


@pytest.mark.parametrize("answer", [OK, BROKEN], ids=["success", "failure"])
def test_an_attempt_under_way_when_its_delivery_is_cancelled_is_logged_and_changes_nothing(
    api: Api, endpoint: Endpoint, delivery: str, answer: Answer
) -> None:
    [dispatch] = take(endpoint)
    api.done(api.delete(f"webhooks/endpoints/{endpoint.id}"))
    database.rows("UPDATE deliveries SET status = 'cancelled', due_at = NULL")

    attempts.record([outcome(dispatch, answer)])

    kept = Delivery.get_by_id(delivery)
    assert (kept.status, kept.due_at, kept.delivered_at) == ("cancelled", None, None)
    assert len(Attempt.of(delivery)) == 1


def test_a_retry_for_an_endpoint_that_was_deleted_meanwhile_is_cancelled(
    api: Api, endpoint: Endpoint, delivery: str
) -> None:
    [dispatch] = take(endpoint)
    api.done(api.delete(f"webhooks/endpoints/{endpoint.id}"))

    attempts.record([outcome(dispatch, BROKEN)])

    kept = Delivery.get_by_id(delivery)
    assert (kept.status, kept.due_at) == ("cancelled", None)


def test_a_delivery_whose_secret_cannot_be_read_does_not_stop_the_others(api: Api) -> None:
    broken, _ = make_endpoint(api.workspace_id, "https://broken.example/")
    good, _ = make_endpoint(api.workspace_id, ADDRESS)
    Endpoint.update(secret=b"nonsense").where(Endpoint.id == broken).execute()
    api.contact(email="ada@example.com")

    dispatches: list[Any] = attempts.claim(lanes.FAST, {broken: 10, good: 10})

    assert good in [dispatch.claimed.owner for dispatch in dispatches]


@pytest.mark.parametrize(("answer", "answered"), [(OK, "2xx"), (BROKEN, "5xx"), (GONE, "4xx"), (SILENT, "none")])
def test_attempts_are_counted_by_what_was_answered(
    endpoint: Endpoint, happen: Callable[[int], None], answer: Answer, answered: str
) -> None:
    name, labels = "bellhop_delivery_attempt_duration_seconds_count", {"answer": answered}
    before = REGISTRY.get_sample_value(name, labels) or 0
    happen(2)

    attempt(endpoint, answer)

    assert REGISTRY.get_sample_value(name, labels) == before + 2

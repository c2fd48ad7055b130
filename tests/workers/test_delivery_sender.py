from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator

import pytest
from structlog.contextvars import merge_contextvars
from structlog.testing import capture_logs

from app import bells, database, mailbox
from app.bells import Bell
from app.config import settings
from app.domain.deliveries import attempts, lanes
from app.mailbox import Mail
from tests.cast import Api, all_of, make_endpoint, one, rung_on, until
from tests.stack.receiver import Answer, Receiver
from tests.stack.signatures import is_genuine
from workers import pacing
from workers.delivery_sender import DeliverySender


@pytest.fixture(autouse=True)
def patience(empty: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No attempt runs out of time, and no endpoint looks slow or behind, only because the machine is busy."""
    monkeypatch.setattr(pacing, "SLOW_SECONDS", 60.0)
    monkeypatch.setattr(pacing, "BACKLOG_SECONDS", 30.0)
    monkeypatch.setenv("WEBHOOK_TIMEOUT_SECONDS", "30")
    settings.cache_clear()
    yield
    monkeypatch.undo()
    settings.cache_clear()


@pytest.fixture
def sender(patience: None, receiver: Receiver) -> Iterator[DeliverySender]:
    # It ends before the receiver forgets what it got.
    made = DeliverySender(lanes.FAST)
    yield made
    made.stop()
    database.database.close()


def happen(api: Api, count: int = 1) -> None:
    for number in range(count):
        api.post("contacts", {"external_id": str(number)})
    api.apply()


def statuses() -> list[str]:
    return all_of("SELECT DISTINCT status FROM deliveries")


def test_what_is_due_is_delivered_signed_and_whole(api: Api, sender: DeliverySender, receiver: Receiver) -> None:
    endpoint_id, secret = make_endpoint(api.workspace_id, receiver.url())
    happen(api)

    sender.wake(endpoint_id)
    until(lambda: statuses() == ["delivered"])

    [received] = receiver.received
    assert received.body == bytes(one("SELECT body FROM events"))
    assert received.delivery_id == one("SELECT id FROM deliveries")
    assert received.headers["Content-Type"] == "application/json"
    assert is_genuine(secret, received.signature, received.body)


def test_a_mailbox_is_emptied_with_one_bell(api: Api, sender: DeliverySender, receiver: Receiver) -> None:
    endpoint_id, _ = make_endpoint(api.workspace_id, receiver.url())
    happen(api, 150)

    sender.wake(endpoint_id)
    until(lambda: statuses() == ["delivered"])

    assert len({received.delivery_id for received in receiver.received}) == len(receiver.received) == 150


def test_for_a_mailbox_that_goes_on_having_more_other_processes_are_called(
    api: Api, sender: DeliverySender, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    full, _ = make_endpoint(api.workspace_id, receiver.url("/full"))
    happen(api, 100)
    light, _ = make_endpoint(api.workspace_id, receiver.url("/light"))
    happen(api)
    rung: list[str] = []
    monkeypatch.setattr("app.mailbox.ring_again", lambda mail, owner: rung.append(owner))
    monkeypatch.setattr(pacing, "CALL_EVERY", 2)

    sender.wake(full, light)

    until(lambda: statuses() == ["delivered"])
    assert set(rung) == {full}
    assert len(rung) < 10


def test_endpoints_that_wait_for_capacity_take_turns(
    api: Api, sender: DeliverySender, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = ("/first", "/second", "/third")
    endpoint_ids = [make_endpoint(api.workspace_id, receiver.url(path))[0] for path in paths]
    happen(api, 60)
    sender._pace.capacity = 8
    monkeypatch.setattr(pacing, "MOST_UNDER_WAY", 8)
    monkeypatch.setattr(pacing, "LEAST_CAPACITY", 8)  # however busy the machine is

    sender.wake(*endpoint_ids)

    until(lambda: statuses() == ["delivered"])
    arrived = [received.path for received in receiver.received]
    assert len(arrived) == 180
    assert min(arrived[:90].count(path) for path in paths) >= 15


def test_a_failure_is_recorded_with_what_was_answered(api: Api, sender: DeliverySender, receiver: Receiver) -> None:
    endpoint_id, _ = make_endpoint(api.workspace_id, receiver.url("/broken"))
    receiver.answers["/broken"] = Answer(500, b"oops")
    happen(api)

    sender.wake(endpoint_id)
    until(lambda: one("SELECT attempts FROM deliveries") == 1)

    [(status, response)] = database.rows("SELECT status, response_body FROM attempts")
    assert (status, response) == (500, "oops")
    assert one("SELECT status FROM deliveries") == "pending"
    assert one("SELECT extract(epoch FROM next_attempt_at - now()) FROM deliveries") > 30


def test_an_endpoint_that_is_probed_gets_one_request_at_a_time_until_it_answers(
    api: Api, sender: DeliverySender, receiver: Receiver, released: threading.Event
) -> None:
    endpoint_id, _ = make_endpoint(api.workspace_id, receiver.url("/probed"))
    receiver.answers["/probed"] = Answer(200, released=released)
    happen(api, 20)
    database.rows("UPDATE endpoints SET consecutive_failures = 5, probe_at = now()")

    sender.wake(endpoint_id)
    until(lambda: receiver.counts["/probed"] == 1)
    another = DeliverySender(lanes.FAST)
    another.wake(endpoint_id)
    until(lambda: not another.owners.awake and not another.owners._bells)
    another.stop()
    assert receiver.counts["/probed"] == 1

    released.set()
    until(lambda: one("SELECT probe_at IS NULL FROM endpoints"))
    sender.wake(endpoint_id)
    until(lambda: statuses() == ["delivered"])


def test_an_exception_of_ours_is_no_failure_of_the_endpoint(
    api: Api, sender: DeliverySender, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint_id, _ = make_endpoint(api.workspace_id, receiver.url())
    happen(api)
    with monkeypatch.context() as broken:
        broken.setattr("app.domain.deliveries.attempts.Dispatch.headers", lambda _: {}["missing"])
        sender.wake(endpoint_id)
        until(lambda: all_of("SELECT last_error_code FROM deliveries") == ["ours"])
    assert one("SELECT attempts FROM deliveries") == one("SELECT consecutive_failures FROM endpoints") == 0

    until(lambda: mailbox.wake_and_ring(lanes.WAITING))
    sender.wake(endpoint_id)

    until(lambda: statuses() == ["delivered"])


def test_an_outcome_that_cannot_be_recorded_yet_is_recorded_in_a_later_round(
    api: Api, sender: DeliverySender, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint_id, _ = make_endpoint(api.workspace_id, receiver.url())
    happen(api, 3)
    rounds: list[int] = []
    real = attempts.record

    def record(outcomes: list[attempts.Outcome]) -> list[attempts.Outcome]:
        rounds.append(len(outcomes))
        return list(outcomes) if len(rounds) < 4 else real(outcomes)

    monkeypatch.setattr(attempts, "record", record)
    sender.wake(endpoint_id)

    until(lambda: statuses() == ["delivered"])
    assert len(receiver.received) == 3


def test_an_outcome_that_cannot_be_recorded_keeps_no_other_and_counts_as_our_fault(
    api: Api, sender: DeliverySender, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken, _ = make_endpoint(api.workspace_id, receiver.url("/broken"))
    good, _ = make_endpoint(api.workspace_id, receiver.url("/good"))
    receiver.answers["/broken"] = 500
    happen(api, 3)
    real = attempts.record

    def record(outcomes: list[attempts.Outcome]) -> list[attempts.Outcome]:
        if any(outcome.answer.status == 500 for outcome in outcomes):
            raise ValueError
        return real(outcomes)

    monkeypatch.setattr(attempts, "record", record)
    sender.wake(broken, good)

    until(lambda: one("SELECT count(*) FROM deliveries WHERE status = 'delivered'") == 3)
    of_broken = "SELECT last_error_code, status, attempts, leased_until FROM deliveries WHERE endpoint_id = %s"
    until(lambda: set(database.rows(of_broken, (broken,))) == {("ours", "pending", 0, None)})
    assert one("SELECT min(next_attempt_at) > now() + interval '20 seconds' FROM deliveries")


def test_a_retry_carries_the_same_identifier_and_bytes(api: Api, sender: DeliverySender, receiver: Receiver) -> None:
    endpoint_id, _ = make_endpoint(api.workspace_id, receiver.url("/broken"))
    receiver.answers["/broken"] = 503
    happen(api)
    sender.wake(endpoint_id)
    until(lambda: one("SELECT attempts FROM deliveries") == 1)

    receiver.answers["/broken"] = 200
    database.rows("UPDATE deliveries SET next_attempt_at = now()")
    mailbox.wake_and_ring(lanes.WAITING)
    sender.wake(endpoint_id)
    until(lambda: statuses() == ["delivered"])

    first, second = receiver.received
    assert (first.delivery_id, first.body) == (second.delivery_id, second.body)


def test_a_backlog_is_left_to_the_slow_lane_beside_fresh_mail_of_others(
    api: Api, sender: DeliverySender, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pacing, "FRESH_SECONDS", 30.0)  # however busy the machine is
    behind, _ = make_endpoint(api.workspace_id, receiver.url("/behind"))
    happen(api, 400)
    database.rows("UPDATE deliveries SET due_at = now() - interval '1 minute'")
    other, _ = make_endpoint(api.workspace_id, receiver.url("/other"))
    api.post("contacts", {"external_id": "new"})
    api.apply()

    sender.wake(behind, other)

    until(lambda: all_of("SELECT id FROM endpoints WHERE slow_until > now()") == [behind])
    slow = DeliverySender(lanes.SLOW)
    slow.wake(behind)
    until(lambda: statuses() == ["delivered"])
    slow.stop()
    assert len({received.delivery_id for received in receiver.received}) == len(receiver.received) == 402


def test_an_endpoint_that_hangs_does_not_hold_up_another(
    api: Api, sender: DeliverySender, receiver: Receiver, released: threading.Event
) -> None:
    slow, _ = make_endpoint(api.workspace_id, receiver.url("/slow"))
    good, _ = make_endpoint(api.workspace_id, receiver.url("/good"))
    receiver.answers["/slow"] = Answer(200, released=released)
    happen(api, 50)

    sender.wake(slow)
    until(lambda: receiver.counts["/slow"] >= 1)
    sender.wake(good)
    until(lambda: receiver.counts["/good"] == 50)

    assert one("SELECT count(*) FROM deliveries WHERE endpoint_id = %s AND status = 'pending'", slow) > 0


def test_no_more_than_a_window_is_under_way_for_one_endpoint(
    api: Api, sender: DeliverySender, receiver: Receiver, released: threading.Event
) -> None:
    endpoint_id, _ = make_endpoint(api.workspace_id, receiver.url("/slow"))
    receiver.answers["/slow"] = Answer(200, released=released)
    happen(api, 2)

    sender.wake(endpoint_id)
    until(lambda: receiver.counts["/slow"] >= 1)

    assert one("SELECT count(*) FROM deliveries WHERE claim > 0") == 1
    released.set()
    until(lambda: statuses() == ["delivered"])


@pytest.mark.parametrize(("lane", "stays"), [(lanes.FAST, False), (lanes.SLOW, True)], ids=["fast", "slow"])
def test_the_bell_of_an_endpoint_without_room_stays_rung_in_the_slow_lane(
    api: Api, receiver: Receiver, released: threading.Event, lane: Mail, stays: bool
) -> None:
    full, _ = make_endpoint(api.workspace_id, receiver.url("/slow"))
    receiver.answers["/slow"] = Answer(200, released=released)
    happen(api)
    other, _ = make_endpoint(api.workspace_id, receiver.url("/other"))
    if lane is lanes.SLOW:
        lanes.slow_down([full, other])
    sender = DeliverySender(lane)
    sender.wake(full)
    until(lambda: receiver.counts["/slow"] == 1)
    api.post("contacts", {"external_id": "another"})
    api.apply()
    bells.flush(30)  # so that none rings later
    bell = Bell(lane.queue, full).flag
    bells.flags().set(bell, "1")

    sender.wake(full)
    sender.wake(other)
    until(lambda: receiver.counts["/other"] == 1)

    assert bool(bells.flags().exists(bell)) is stays
    released.set()
    until(lambda: statuses() == ["delivered"])
    assert not bells.flags().exists(bell)
    sender.stop()
    database.database.close()


def test_stopping_waits_for_what_is_under_way_and_claims_nothing_more(api: Api, receiver: Receiver) -> None:
    endpoint_id, _ = make_endpoint(api.workspace_id, receiver.url("/slow"))
    receiver.answers["/slow"] = Answer(200, delay_seconds=0.5)
    happen(api, 21)
    sender = DeliverySender(lanes.FAST)
    sender.wake(endpoint_id)
    until(lambda: receiver.counts["/slow"] >= 1)

    sender.stop()

    assert one("SELECT count(*) FROM deliveries WHERE status = 'delivered'") == receiver.counts["/slow"]
    assert one("SELECT count(*) FROM deliveries WHERE status = 'pending' AND leased_until > now()") == 0


def test_stopping_rings_for_those_that_had_no_room(api: Api, receiver: Receiver, released: threading.Event) -> None:
    endpoint_id, _ = make_endpoint(api.workspace_id, receiver.url("/slow"))
    receiver.answers["/slow"] = Answer(200, released=released)
    happen(api)
    lanes.slow_down([endpoint_id])
    sender = DeliverySender(lanes.SLOW)
    sender.wake(endpoint_id)
    until(lambda: receiver.counts["/slow"] == 1)
    bells.flush(30)  # so that none rings later
    bell = Bell(lanes.SLOW.queue, endpoint_id).flag
    bells.flags().set(bell, "1")
    sender.wake(endpoint_id)

    stopping = threading.Thread(target=sender.stop)
    stopping.start()
    released.set()
    stopping.join()

    assert rung_on(lanes.SLOW.queue) == [endpoint_id]
    database.database.close()


def test_stopping_a_sender_that_never_woke_returns(empty: None) -> None:
    DeliverySender(lanes.FAST).stop()


def test_the_slow_lane_waits_by_how_long_a_cycle_took_until_it_is_stopped() -> None:
    slow, fast = DeliverySender(lanes.SLOW), DeliverySender(lanes.FAST)

    def waits(sender: DeliverySender, took: float) -> float:
        began = time.monotonic()
        sender.gather(took)
        return time.monotonic() - began

    assert waits(slow, 0.05) >= 0.15
    assert waits(fast, 100.0) < 100.0
    slow.stop()
    assert waits(slow, 100.0) < 100.0


# Logs of a whole story


def test_no_log_line_of_a_whole_story_shows_a_secret_or_personal_data(
    api: Api, sender: DeliverySender, receiver: Receiver
) -> None:
    receiver.answers["/broken"] = Answer(500, b"no thanks ada@example.com")
    with capture_logs(processors=[merge_contextvars]) as lines:
        answers = [
            api.post("webhooks/endpoints", {"address": receiver.url(path), "events": ["*"]})
            for path in ("/good", "/broken")
        ]
        api.apply()
        body = {
            "email": "ada@example.com",
            "phone": "+4930123456",
            "last_name": "Lovelace",
            "external_id": "customer-1",
        }
        made = api.post("contacts", body)
        api.post("contacts", {"external_id": "other", "email": "ada@example.com"})
        api.post("contacts", {"email": "not ada@example.com"})
        api.apply()
        api.get("contacts?email=ada@example.com&q=Lovelace")
        api.delete(f"contacts/{api.job(made)['resource']['id']}/tags/ada@example.com")
        api.get("contacts", headers={"Authorization": f"Bearer {api.token}x"})
        for answer in answers:
            sender.wake(answer.json["data"]["resource"]["id"])
        until(lambda: one("SELECT count(*) FROM attempts") == 2)
        until(lambda: len([line for line in lines if line["event"] == "delivery.attempt"]) == 2)

    text = json.dumps(lines, default=str)
    secrets = [answer.json["secret"] for answer in answers]
    personal = ["ada@example.com", "30123456", "Lovelace", "customer-1"]
    assert [shown for shown in [api.token, *secrets, *personal] if shown in text] == []
    assert {"request", "job.finished", "delivery.attempt"} <= {line["event"] for line in lines}


def test_no_log_line_of_a_rotation_or_a_test_shows_a_secret(
    api: Api, sender: DeliverySender, receiver: Receiver
) -> None:
    endpoint_id, first = make_endpoint(api.workspace_id, receiver.url())
    with capture_logs(processors=[merge_contextvars]) as lines:
        rotated = [api.post(f"webhooks/endpoints/{endpoint_id}/rotate-secret") for _ in range(2)]
        database.rows("UPDATE jobs SET payload = '{}' WHERE id = %s", (rotated[0].json["data"]["id"],))
        api.post(f"webhooks/endpoints/{endpoint_id}/test", {"kind": "contact.created"})
        api.apply()
        sender.wake(endpoint_id)
        until(lambda: [line for line in lines if line["event"] == "delivery.attempt"])

    secret = rotated[1].json["secret"]
    [received] = receiver.received
    assert is_genuine(secret, received.signature, received.body)
    assert is_genuine(first, received.signature, received.body)
    assert "job.broke" in {line["event"] for line in lines}
    text = json.dumps(lines, default=str)
    assert [shown for shown in (first, secret, rotated[0].json["secret"], "whsec_", "gAAAA") if shown in text] == []


def test_the_request_identifier_is_in_every_line_about_its_job_and_its_deliveries(
    api: Api, sender: DeliverySender, receiver: Receiver
) -> None:
    endpoint_id, _ = make_endpoint(api.workspace_id, receiver.url())
    with capture_logs(processors=[merge_contextvars]) as lines:
        api.post("contacts", {"email": "ada@example.com"}, headers={"X-Request-Id": "the-cause"})
        api.apply()
        sender.wake(endpoint_id)
        until(lambda: [line for line in lines if line["event"] == "delivery.attempt"])

    caused = {line["event"] for line in lines if line.get("request_id") == "the-cause"}
    assert caused == {"request", "job.finished", "delivery.attempt"}
    [accepted] = [line for line in lines if line["event"] == "request"]
    [finished] = [line for line in lines if line["event"] == "job.finished"]
    assert accepted["job"] == finished["job"] == one("SELECT id FROM jobs WHERE kind = 'contacts.upsert'")


def test_capacity_that_hanging_endpoints_take_holds_up_nobody_for_long(
    api: Api, sender: DeliverySender, receiver: Receiver, released: threading.Event
) -> None:
    hanging, _ = make_endpoint(api.workspace_id, receiver.url("/slow"))
    receiver.answers["/slow"] = Answer(200, released=released)
    happen(api)
    sender.wake(hanging)
    until(lambda: receiver.counts["/slow"] == 1)
    answered, _ = make_endpoint(api.workspace_id, receiver.url("/quick"))
    api.post("contacts", {"external_id": "another"})
    api.apply()

    sender._pace.capacity = 1
    sender.wake(answered)

    until(lambda: "delivered" in statuses())
    assert one("SELECT count(*) FROM attempts") == receiver.counts["/quick"] == 1


def test_capacity_given_to_one_that_has_nothing_passes_on(api: Api, sender: DeliverySender, receiver: Receiver) -> None:
    endpoint_id, _ = make_endpoint(api.workspace_id, receiver.url())
    happen(api)
    without_mail, _ = make_endpoint(api.workspace_id, receiver.url("/nothing"))

    sender._pace.capacity = 1
    sender.wake(without_mail, endpoint_id)

    until(lambda: statuses() == ["delivered"])

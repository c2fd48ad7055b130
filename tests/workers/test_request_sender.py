from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
from peewee import OperationalError

from app import database
from app.domain.automations import http_requests
from app.domain.work.request_attempts import Outcome
from app.models.runs import RunRequest
from tests.cast import Api, all_of, one, rung_on, until
from tests.requesting import answer_of, make_request
from tests.stack.receiver import Answer, Receiver
from workers import dispatcher
from workers.request_sender import RequestSender


@pytest.fixture
def requester(empty: None, receiver: Receiver) -> Iterator[RequestSender]:
    # It ends before the receiver forgets what it got.
    made = RequestSender(http_requests)
    yield made
    made.stop()
    database.database.close()


def answered() -> int:
    return int(one("SELECT count(*) FROM runs WHERE answer IS NOT NULL"))


def test_the_response_reaches_the_run(api: Api, requester: RequestSender, receiver: Receiver) -> None:
    receiver.answers["/x"] = Answer(201, b'{"a": 1}')
    run_id, _ = make_request(api.workspace_id, receiver.url("/x"), headers={"X-Shop": "Wool"}, body="Hello")
    key = one("SELECT key::text FROM run_requests")

    requester.wake(api.workspace_id)
    until(lambda: answer_of(run_id))

    answer = answer_of(run_id)
    assert answer
    assert (answer["status"], answer["body"], answer["error"]) == (201, '{"a": 1}', None)
    [received] = receiver.received
    assert received.body == b"Hello"
    assert (received.headers["X-Shop"], received.headers["Idempotency-Key"]) == ("Wool", key)


def test_a_workspace_that_was_just_rung_for_is_served_beside_a_backlog(
    requester: RequestSender, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_requests, "MOST_UNDER_WAY", 41)
    requester.owners.awake = dict.fromkeys(["ws_1", "ws_2", "ws_3", "ws_new"])
    requester.owners.new = {"ws_new": None}

    assert requester.rooms() == {"ws_new": 1, "ws_1": 20, "ws_2": 20}
    requester.owners.awake = requester.owners.new
    assert requester.rooms() == {"ws_new": 20}


def test_at_most_64_kib_of_a_response_are_kept(api: Api, requester: RequestSender, receiver: Receiver) -> None:
    receiver.answers["/x"] = Answer(200, b"x" * 100_000)
    run_id, _ = make_request(api.workspace_id, receiver.url("/x"))

    requester.wake(api.workspace_id)

    answer = until(lambda: answer_of(run_id))
    assert (len(answer["body"]), answer["is_whole"]) == (65_536, False)


def test_a_private_address_is_not_called(api: Api, requester: RequestSender) -> None:
    run_id, _ = make_request(api.workspace_id, "https://10.0.0.1/")

    requester.wake(api.workspace_id)

    assert until(lambda: answer_of(run_id))["error"]["code"] == "private_address"


def test_a_mailbox_is_emptied_with_one_bell_a_few_at_a_time(
    api: Api, requester: RequestSender, receiver: Receiver, released: threading.Event
) -> None:
    receiver.answers["/x"] = Answer(released=released)
    for _ in range(50):
        make_request(api.workspace_id, receiver.url("/x"))

    requester.wake(api.workspace_id)

    until(lambda: receiver.counts["/x"] == http_requests.MOST_EACH)
    released.set()
    until(lambda: answered() == 50)
    assert receiver.counts["/x"] == 50


def test_a_server_that_hangs_delays_no_other_workspace(
    api: Api, others: Api, requester: RequestSender, receiver: Receiver, released: threading.Event
) -> None:
    receiver.answers["/hangs"] = Answer(released=released)
    for _ in range(50):
        make_request(api.workspace_id, receiver.url("/hangs"))
    requester.wake(api.workspace_id)
    until(lambda: receiver.counts["/hangs"] == http_requests.MOST_EACH)
    run_id, _ = make_request(others.workspace_id, receiver.url("/x"))

    requester.wake(others.workspace_id)

    until(lambda: answer_of(run_id))
    assert answered() == 1


def test_room_given_to_a_workspace_that_has_nothing_passes_on(
    api: Api, others: Api, requester: RequestSender, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_requests, "MOST_UNDER_WAY", 1)
    run_id, _ = make_request(api.workspace_id, receiver.url("/x"))

    requester.wake(others.workspace_id, api.workspace_id)

    until(lambda: answer_of(run_id))


def test_behind_requests_that_nobody_waits_for_any_more_it_finds_the_others(
    api: Api, requester: RequestSender, receiver: Receiver
) -> None:
    for _ in range(http_requests.MOST_EACH):
        make_request(api.workspace_id)
    database.rows("UPDATE runs SET waits_for = NULL")
    run_id, _ = make_request(api.workspace_id, receiver.url("/x"))

    requester.wake(api.workspace_id)

    until(lambda: answer_of(run_id))
    assert RunRequest.select().count() == 0


def test_a_failure_is_tried_again_later(api: Api, requester: RequestSender, receiver: Receiver) -> None:
    receiver.answers["/x"] = 503
    make_request(api.workspace_id, receiver.url("/x"))

    requester.wake(api.workspace_id)

    until(lambda: all_of("SELECT tries FROM run_requests") == [1])
    assert one("SELECT next_attempt_at IS NOT NULL AND leased_until IS NULL FROM run_requests")


def test_it_stops_when_all_under_way_is_recorded_and_leaves_the_rest_to_others(
    api: Api, requester: RequestSender, receiver: Receiver, released: threading.Event
) -> None:
    receiver.answers["/x"] = Answer(released=released)
    for _ in range(30):
        make_request(api.workspace_id, receiver.url("/x"))
    requester.wake(api.workspace_id)
    until(lambda: receiver.counts["/x"] == http_requests.MOST_EACH)
    stopping = threading.Thread(target=requester.stop)
    stopping.start()

    released.set()
    stopping.join(20)

    assert not stopping.is_alive()
    assert answered() == http_requests.MOST_EACH
    assert all_of("SELECT DISTINCT leased_until FROM run_requests") == [None]
    assert rung_on("run-requests") == [api.workspace_id]


def test_what_does_not_end_in_time_is_left_to_others_and_spends_no_attempt(
    api: Api,
    requester: RequestSender,
    receiver: Receiver,
    released: threading.Event,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dispatcher, "GRACE_SECONDS", 0.1)
    receiver.answers["/x"] = Answer(released=released)
    make_request(api.workspace_id, receiver.url("/x"))
    requester.wake(api.workspace_id)
    until(lambda: receiver.counts["/x"] == 1)

    requester.stop()

    [row] = database.rows("SELECT tries, next_attempt_at IS NOT NULL, leased_until FROM run_requests")
    assert row == (0, True, None)


def test_while_the_database_is_away_it_tries_again(
    api: Api, requester: RequestSender, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatcher, "AWAY_SECONDS", 0.01)
    run_id, _ = make_request(api.workspace_id, receiver.url("/x"))
    record, claim = http_requests.record, http_requests.claim
    calls: list[str] = []

    def fail_first(name: str, work: object) -> object:
        def call(given: object) -> object:
            calls.append(name)
            if calls.count(name) == 1:
                raise OperationalError("away")
            return work(given)  # type: ignore[operator]

        return call

    monkeypatch.setattr(http_requests, "record", fail_first("record", record))
    monkeypatch.setattr(http_requests, "claim", fail_first("claim", claim))

    requester.wake(api.workspace_id)

    until(lambda: answer_of(run_id))
    assert receiver.counts["/x"] == 1


def test_a_response_whose_run_is_locked_is_recorded_when_it_is_free(
    api: Api, requester: RequestSender, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id, _ = make_request(api.workspace_id, receiver.url("/x"))
    tries: list[float] = []
    record = http_requests.record

    def hold_twice(outcomes: list[Outcome]) -> list[Outcome]:
        tries.append(time.monotonic())
        return outcomes if len(tries) < 3 else record(outcomes)

    monkeypatch.setattr(http_requests, "record", hold_twice)

    requester.wake(api.workspace_id)

    until(lambda: answer_of(run_id))
    assert receiver.counts["/x"] == 1

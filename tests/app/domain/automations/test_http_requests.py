from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from app import database, mailbox
from app.domain.automations import http_requests
from app.domain.triggers import run_states
from app.domain.work.request_attempts import Dispatch, Outcome
from app.models.runs import Run, RunRequest
from app.outbound import Answer, Reason, answered, failed
from tests.cast import Api, all_of, elsewhere, one, rung_on
from tests.requesting import answer_of, make_request

LATE = failed(Reason.LATE, "30 seconds", 30_000)
FAULT = failed(Reason.RESOLVER, "shop.example", 20)


def claim(api: Api, room: int = 10) -> list[Dispatch]:
    return list(http_requests.claim({api.workspace_id: room}).dispatches)


def claim_again(api: Api) -> list[Dispatch]:
    """What waits or is leased, as if its time had come."""
    database.rows("UPDATE run_requests SET due_at = now(), next_attempt_at = NULL, leased_until = NULL")
    return claim(api)


def record(dispatch: Dispatch, answer: Answer) -> list[Outcome]:
    return http_requests.record([Outcome(dispatch, answer)])


def put_off(dispatch: Dispatch, answer: Answer) -> tuple[float, float]:
    """Records the answer; returns the least and the most seconds that the next attempt may be put off by."""
    began = one("SELECT clock_timestamp()")
    record(dispatch, answer)
    [found] = database.rows(
        "SELECT extract(epoch FROM next_attempt_at - clock_timestamp())::float,"
        " extract(epoch FROM next_attempt_at - %s)::float FROM run_requests",
        (began,),
    )
    return found


def test_a_claimed_request_has_what_is_sent_and_the_key_of_its_row(api: Api) -> None:
    run_id, request_id = make_request(
        api.workspace_id, "https://shop.example/x", method="PUT", headers={"X-A": "1"}, body="hé"
    )

    [dispatch] = claim(api)

    key = one("SELECT key::text FROM run_requests")
    assert (dispatch.claimed.id, dispatch.claimed.carried.run_id) == (request_id, run_id)
    assert (dispatch.request.method, dispatch.request.address) == ("PUT", "https://shop.example/x")
    assert dispatch.request.headers == {"X-A": "1", "Idempotency-Key": key}
    assert dispatch.request.body == "hé".encode()
    assert claim(api) == []


def test_a_workspace_whose_room_was_filled_may_have_more(api: Api, others: Api) -> None:
    for _ in range(3):
        make_request(api.workspace_id)
    make_request(others.workspace_id)

    found = http_requests.claim({api.workspace_id: 2, others.workspace_id: 2})

    assert len(found.dispatches) == 3
    assert found.more == [api.workspace_id]


@pytest.mark.parametrize(
    "change",
    ["status = 'cancelled', waits_for = NULL, finished_at = now()", "wait = 4", "waits_for = 'reply'"],
    ids=["ended", "at another wait", "waits for something else"],
)
def test_a_request_that_its_run_does_not_wait_for_is_dropped_unsent(api: Api, change: str) -> None:
    make_request(api.workspace_id)
    database.rows(f"UPDATE runs SET {change}")

    found = http_requests.claim({api.workspace_id: 1})

    assert (found.dispatches, found.more) == ([], [api.workspace_id])
    assert RunRequest.select().count() == 0


def test_a_final_response_is_handed_to_the_run_which_is_due(api: Api) -> None:
    run_id, _ = make_request(api.workspace_id)
    [dispatch] = claim(api)

    assert record(dispatch, answered(201, b'{"a": 1}', 35)) == []

    assert answer_of(run_id) == {
        "status": 201,
        "body": '{"a": 1}',
        "is_whole": True,
        "duration_ms": 35,
        "attempts": 1,
        "error": None,
    }
    run = Run.get_by_id(run_id)
    assert (run.status, run.waits_for, run.wait) == ("running", "response", 3)
    assert RunRequest.select().count() == 0
    assert rung_on("runs") == [api.workspace_id]
    [claimed] = mailbox.claim(run_states.MAIL, {api.workspace_id: 1}, 5)
    assert claimed.id == run_id


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (answered(400), "status"),
        (answered(410), "gone"),
        (answered(302), "redirect"),
        (failed(Reason.PRIVATE_ADDRESS, "10.0.0.1"), "private_address"),
    ],
)
def test_what_will_not_change_is_final_at_once(api: Api, answer: Answer, code: str) -> None:
    run_id, _ = make_request(api.workspace_id)
    [dispatch] = claim(api)

    record(dispatch, answer)

    handed = answer_of(run_id)
    assert handed
    assert handed["error"] == {"code": code, "detail": answer.error}
    assert handed["status"] == answer.status


@pytest.mark.parametrize("answer", [answered(500), answered(503), answered(429), LATE, failed(Reason.REFUSED)])
def test_what_may_pass_is_tried_three_times_under_one_key(api: Api, answer: Answer) -> None:
    run_id, _ = make_request(api.workspace_id)
    dispatches = claim(api)
    keys = {dispatches[0].request.headers["Idempotency-Key"]}
    for pause in (1, 10):
        least, most = put_off(dispatches[0], answer)
        assert least <= pause <= most
        assert answer_of(run_id) is None
        dispatches = claim_again(api)
        keys.add(dispatches[0].request.headers["Idempotency-Key"])

    record(dispatches[0], answer)

    handed = answer_of(run_id)
    assert handed
    assert (handed["attempts"], handed["status"]) == (3, answer.status)
    assert handed["error"]["code"] == answer.error_code
    assert len(keys) == 1


@pytest.mark.parametrize(
    ("status", "asked", "pause"), [(429, "12", 12), (503, "7200", 3_600), (500, "12", 1), (429, "soon", 1)]
)
def test_a_server_may_ask_for_a_longer_pause(api: Api, status: int, asked: str, pause: float) -> None:
    make_request(api.workspace_id)
    [dispatch] = claim(api)

    least, most = put_off(dispatch, answered(status, retry_after=asked))

    assert least <= pause <= most


def test_one_that_waits_for_its_next_attempt_becomes_due_in_time(api: Api) -> None:
    make_request(api.workspace_id)
    record(claim(api)[0], LATE)
    assert mailbox.wake_and_ring(http_requests.WAITING) == 0
    assert claim(api) == []

    database.rows("UPDATE run_requests SET next_attempt_at = now() - interval '1 second'")

    assert mailbox.wake_and_ring(http_requests.WAITING) == 1
    assert rung_on("run-requests") == [api.workspace_id]
    assert len(claim(api)) == 1


def test_a_fault_of_ours_spends_no_attempt(api: Api) -> None:
    run_id, _ = make_request(api.workspace_id)
    [dispatch] = claim(api)
    for _ in range(5):
        http_requests.record([Outcome(dispatch, FAULT, 8)])
        assert one("SELECT next_attempt_at > now() + interval '7 seconds' FROM run_requests")
        [dispatch] = claim_again(api)

    record(dispatch, answered(200))

    handed = answer_of(run_id)
    assert handed
    assert handed["attempts"] == 1


@pytest.mark.parametrize("answer", [answered(200), LATE], ids=["final", "not final"])
def test_an_outcome_of_a_lease_that_has_passed_to_another_worker_does_nothing(api: Api, answer: Answer) -> None:
    run_id, _ = make_request(api.workspace_id)
    [stale] = claim(api)
    [dispatch] = claim_again(api)

    assert record(stale, answer) == []

    assert answer_of(run_id) is None
    assert one("SELECT leased_until IS NOT NULL FROM run_requests")
    record(dispatch, answered(200))
    assert answer_of(run_id)


def test_an_outcome_counts_once(api: Api) -> None:
    run_id, _ = make_request(api.workspace_id)
    [dispatch] = claim(api)
    record(dispatch, answered(200))
    database.rows("UPDATE runs SET answer = NULL, due_at = NULL")

    assert record(dispatch, answered(200)) == []
    assert answer_of(run_id) is None


@pytest.mark.parametrize("change", ["wait = 4", "status = 'cancelled', waits_for = NULL, finished_at = now()"])
def test_a_response_for_a_wait_that_is_over_does_nothing(api: Api, change: str) -> None:
    run_id, _ = make_request(api.workspace_id)
    [dispatch] = claim(api)
    database.rows(f"UPDATE runs SET {change}")

    assert record(dispatch, answered(200)) == []

    assert answer_of(run_id) is None
    assert one("SELECT due_at FROM runs") is None
    assert RunRequest.select().count() == 0


def test_a_response_for_a_run_that_is_gone_is_dropped(api: Api) -> None:
    make_request(api.workspace_id)
    [dispatch] = claim(api)
    database.rows("DELETE FROM runs")

    assert record(dispatch, answered(200)) == []
    assert RunRequest.select().count() == 0


def test_it_never_waits_for_a_run_that_another_transaction_has_locked(api: Api) -> None:
    locked, _ = make_request(api.workspace_id)
    free, _ = make_request(api.workspace_id)
    outcomes = [Outcome(dispatch, answered(200)) for dispatch in claim(api)]

    with elsewhere(lambda: database.rows("SELECT FROM runs WHERE id = %s FOR UPDATE", (locked,))):
        later = http_requests.record(outcomes)

        assert [outcome.claimed.carried.run_id for outcome in later] == [locked]
        assert (answer_of(locked), bool(answer_of(free))) == (None, True)
    assert http_requests.record(later) == []
    assert answer_of(locked)


def test_a_response_may_be_any_bytes(api: Api) -> None:
    run_id, _ = make_request(api.workspace_id)

    record(claim(api)[0], answered(200, b"a\0b\xff", is_whole=False))

    handed = answer_of(run_id)
    assert handed
    assert (handed["body"], handed["is_whole"]) == ("ab\ufffd", False)


def test_a_response_is_read_in_its_encoding(api: Api) -> None:
    declared = answered(200, "Müller".encode("latin-1"), headers=(("content-type", "text/plain; charset=iso-8859-1"),))
    marked = answered(200, b'\xef\xbb\xbf{"code": "A"}')

    assert http_requests.answer_of(declared, attempts=1)["body"] == "Müller"
    assert http_requests.answer_of(marked, attempts=1)["body"] == '{"code": "A"}'


def test_many_outcomes_take_as_many_statements_as_one(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(30):
        make_request(api.workspace_id)
    dispatches = claim(api, 30)
    answers = [answered(200), LATE, FAULT] * 10
    statements: list[str] = []
    execute = database.database._execute
    monkeypatch.setattr(
        database.database, "_execute", lambda sql, params: (statements.append(sql), execute(sql, params))[1]
    )

    http_requests.record([Outcome(dispatch, answer) for dispatch, answer in zip(dispatches, answers, strict=True)])

    assert len(statements) == 2
    assert sum(answer is not None for answer in all_of("SELECT answer FROM runs")) == 10


def test_an_attempt_is_logged_without_its_address(api: Api) -> None:
    run_id, _ = make_request(api.workspace_id, "https://shop.example/?key=s3cret")
    [dispatch] = claim(api)

    with capture_logs() as lines:
        record(dispatch, answered(302, target="https://shop.example/?key=s3cret"))

    [line] = [line for line in lines if line["event"] == "run.request"]
    assert (line["run"], line["code"], line["status"], line["number"]) == (run_id, 302, "failed", 1)
    assert "s3cret" not in str(line)

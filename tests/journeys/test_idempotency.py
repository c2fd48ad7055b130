"""One key, one job: with concurrent requests, several web processes, and processes killed or servers away."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager

import psutil
import psycopg2
import pytest

from tests.journeys.audit import rows, settle
from tests.journeys.faults import empty_redis, kill, redis_away, redis_hanging
from tests.journeys.logs import lines
from tests.journeys.shops import Answer, Caller, NoAnswer, Shop, open_shop
from tests.journeys.waiting import wait_until
from tests.stack.freezing import freeze
from tests.stack.receiver import Receiver
from tests.stack.stack import Stack

ADA = {"email": "ada@example.com"}
REQUESTS = 50


@pytest.fixture
def shop(broad: Stack, receiver: Receiver) -> Shop:
    return open_shop(broad, receiver, "Idempotency")


@pytest.fixture
def key() -> str:
    return str(uuid.uuid4())


def upsert(caller: Caller, key: str, request_id: str = "", **further: str) -> Answer:
    return caller.call("POST", "contacts", ADA, {"Idempotency-Key": key, "X-Request-Id": request_id, **further})


def at_once(stack: Stack, shop: Shop, key: str, request_id: str = "") -> list[Answer]:
    """Sends REQUESTS requests with one key at the same moment, each on its own connection."""
    callers = connected(stack, shop)
    together = threading.Barrier(REQUESTS)

    def ask(caller: Caller) -> Answer:
        together.wait(30)
        return upsert(caller, key, request_id)

    with ThreadPoolExecutor(REQUESTS) as pool:
        return list(pool.map(ask, callers))


def connected(stack: Stack, shop: Shop) -> list[Caller]:
    """REQUESTS callers, whose connections are open and do not all end at the same process."""
    callers = [shop.caller() for _ in range(REQUESTS)]
    first = str(uuid.uuid4())
    assert callers[0].call("GET", "contacts?limit=1", None, {"X-Request-Id": first}).status == 200
    wait_until(lambda: served(stack, first), 20, "the request is logged")
    holder = psutil.Process(int(served(stack, first)[0].removeprefix("web:")))
    freeze(holder)  # so that it cannot accept the second connection too
    try:
        callers[1].get("contacts?limit=1")
    finally:
        holder.resume()
    for caller in callers[2:]:
        caller.get("contacts?limit=1")
    return callers


def made_one_job(stack: Stack, shop: Shop, answers: list[Answer]) -> bool:
    """Whether all responses have the same job, only one of them as new, and it took effect once."""
    assert [answer.status for answer in answers] == [202] * len(answers)
    assert [answer.headers.get("Idempotent-Replayed") for answer in answers].count("true") == len(answers) - 1
    settle(stack, [shop])
    jobs = [identifier for (identifier,) in rows(stack, OF_CONTACTS, shop.workspace_id)]
    return {answer.data["id"] for answer in answers} == set(jobs) and len(jobs) == contacts_made(stack, shop) == 1


OF_CONTACTS = "SELECT id FROM jobs WHERE workspace_id = %s AND kind = 'contacts.upsert'"


def contacts_made(stack: Stack, shop: Shop) -> int:
    made = "SELECT count(*) FROM events WHERE workspace_id = %s AND kind = 'contact.created'"
    return int(rows(stack, made, shop.workspace_id)[0][0])


def test_fifty_requests_at_once_to_several_processes_make_one_job(
    broad: Stack, shop: Shop, receiver: Receiver, key: str
) -> None:
    request_id = f"at-once-{shop.workspace_id}"

    answers = at_once(broad, shop, key, request_id)

    assert made_one_job(broad, shop, answers)
    assert len(receiver.received) == 1
    wait_until(lambda: len(served(broad, request_id)) == REQUESTS, 20, "every request is logged")
    assert len(set(served(broad, request_id))) > 1


def served(stack: Stack, request_id: str) -> list[str]:
    """The processes that served the requests with this identifier."""
    return [
        line["process"]
        for line in lines(stack, "web")
        if line.get("request_id") == request_id and line["event"] == "request"
    ]


@pytest.mark.parametrize("without_redis", [redis_away, redis_hanging])
def test_fifty_requests_at_once_make_one_job_without_redis(
    without_redis: Callable[[Stack], AbstractContextManager[None]], broad: Stack, shop: Shop, key: str
) -> None:
    with without_redis(broad):
        answers = at_once(broad, shop, key)

    assert made_one_job(broad, shop, answers)


@pytest.mark.nightly
def test_fifty_requests_at_once_make_one_job_while_processes_are_killed(broad: Stack, shop: Shop, key: str) -> None:
    """A client without a response retries with the same key, as it must."""
    calm = threading.Event()

    def disturb() -> None:
        for _ in range(2):
            kill(broad, "web")
        broad.processes.wait_ready()
        calm.set()

    disturbing = threading.Thread(target=disturb)
    disturbing.start()
    try:
        with ThreadPoolExecutor(REQUESTS) as pool:
            answers = list(pool.map(lambda _: until_answered(shop, key, calm), range(REQUESTS)))
    finally:
        disturbing.join()

    settle(broad, [shop])
    assert {answer.status for answer in answers} == {202}
    assert {answer.data["id"] for answer in answers} == {job for (job,) in rows(broad, OF_CONTACTS, shop.workspace_id)}
    assert contacts_made(broad, shop) == 1


def until_answered(shop: Shop, key: str, calm: threading.Event) -> Answer:
    """The first response; once nothing is killed any more, the next request must have one."""
    caller = shop.caller()
    while True:
        was_calm = calm.is_set()
        try:
            return upsert(caller, key)
        except NoAnswer:
            assert not was_calm, "No answer came though every process was ready."
            time.sleep(0.05)


def test_a_key_outlives_redis_postgres_and_every_process(broad: Stack, shop: Shop, key: str) -> None:
    first = upsert(shop.caller(), key)
    outages = [
        lambda: empty_redis(broad),
        broad.postgres.restart,
        lambda: (broad.postgres.kill(), broad.postgres.start()),
        lambda: kill(broad, "web", "writes", "scheduler"),
    ]

    for outage in outages:
        outage()
        broad.processes.wait_ready()
        again = upsert(shop.caller(), key)
        assert (again.status, again.headers["Idempotent-Replayed"]) == (202, "true")
        assert again.data["id"] == first.data["id"]

    settle(broad, [shop])
    assert contacts_made(broad, shop) == 1


def test_a_process_killed_between_commit_and_answer_has_made_the_job_that_a_retry_gets(
    broad: Stack, shop: Shop, key: str
) -> None:
    with ThreadPoolExecutor(1) as pool:
        with key_held(broad, shop, key):
            asked = pool.submit(upsert, shop.caller(), key)
            wait_until(lambda: waiting_for_the_key(broad), 10, "the request waits for its key")
            freeze_web(broad)
        # The frozen process cannot read PostgreSQL's response.
        wait_until(lambda: stored(broad, shop, key), 10, "the write is committed")
        assert not asked.done()
        kill(broad, "web")
        assert isinstance(asked.exception(30), NoAnswer)
    [job] = stored(broad, shop, key)
    broad.processes.wait_ready()

    again = upsert(shop.caller(), key)

    assert (again.status, again.headers["Idempotent-Replayed"], again.data["id"]) == (202, "true", job)
    assert upsert(shop.caller(), key, Prefer="wait=20").status == 201
    settle(broad, [shop])
    assert contacts_made(broad, shop) == 1


@pytest.mark.nightly
def test_a_process_killed_before_the_commit_has_made_nothing_and_used_up_no_key(
    broad: Stack, shop: Shop, key: str
) -> None:
    with ThreadPoolExecutor(1) as pool:
        with key_held(broad, shop, key):
            asked = pool.submit(upsert, shop.caller(), key)
            wait_until(lambda: waiting_for_the_key(broad), 10, "the request waits for its key")
            for backend in waiting_for_the_key(broad):
                freeze_web(broad)
                rows(broad, "SELECT pg_terminate_backend(%s, 5000)", backend)
            kill(broad, "web")
        assert isinstance(asked.exception(30), NoAnswer)
    assert stored(broad, shop, key) == []
    broad.processes.wait_ready()

    again = upsert(shop.caller(), key)

    assert again.status == 202
    assert "Idempotent-Replayed" not in again.headers
    assert stored(broad, shop, key) == [again.data["id"]]


@contextmanager
def key_held(stack: Stack, shop: Shop, key: str) -> Iterator[None]:
    """Holds the key in a transaction that is rolled back at the end, so that requests with the key wait."""
    connection = psycopg2.connect(stack.postgres.url)
    try:
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO idempotency_keys (token_id, key, fingerprint, job_id)"
                " SELECT id, %s, '', '' FROM tokens WHERE workspace_id = %s",
                (key, shop.workspace_id),
            )
        yield
    finally:
        connection.rollback()
        connection.close()


def waiting_for_the_key(stack: Stack) -> list[int]:
    """The backends of PostgreSQL whose write waits. Behind a pooler its statement is not prepared."""
    waiting = "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query SIMILAR TO %s"
    return [pid for (pid,) in rows(stack, waiting, "EXECUTE accept_once %|%INSERT INTO idempotency_keys%")]


def stored(stack: Stack, shop: Shop, key: str) -> list[str]:
    """The committed jobs of the key."""
    query = (
        "SELECT jobs.id FROM idempotency_keys JOIN jobs ON jobs.id = job_id WHERE jobs.workspace_id = %s AND key = %s"
    )
    return [job for (job,) in rows(stack, query, shop.workspace_id, key)]


def freeze_web(stack: Stack) -> None:
    for pid in stack.processes.pids("web"):
        for process in psutil.Process(pid).children():
            freeze(process)

"""The loop that empties mailboxes, exclusive and shared."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from functools import partial

import pytest
from structlog.testing import capture_logs

from app import bells, mailbox
from app.database import DatabaseAway, rows, transaction
from app.mailbox import Claimed, Mail, serving
from tests.app.mailbox.boxes import IN_ORDER, RUNS, end_leases, open_mailbox, post
from tests.cast import all_of, in_threads, one

EACH = pytest.mark.parametrize("mail", [IN_ORDER, RUNS], ids=["exclusive", "shared"])

pytestmark = pytest.mark.usefixtures("empty")


@pytest.fixture
def owner() -> str:
    return open_mailbox("box-1")


class Worker:
    """Finishes what it claims, each batch in a transaction that holds it, and remembers the batches."""

    def __init__(self, mail: Mail) -> None:
        self.mail = mail
        self.batches: list[list[str]] = []

    def __call__(self, batch: Sequence[Claimed]) -> None:
        with transaction():
            if mailbox.holding(self.mail, batch):
                ids = [claimed.id for claimed in batch]
                rows(f"UPDATE {self.mail.table} SET due_at = NULL, leased_until = NULL WHERE id = ANY(%s)", (ids,))
                self.batches.append(ids)

    @property
    def done(self) -> list[str]:
        return [id for batch in self.batches for id in batch]


def serve(mail: Mail, owner: str, room: int, work: Callable[[Sequence[Claimed]], object]) -> None:
    if mail.exclusive:
        mailbox.serve(mail, owner, room, work)
    else:
        mailbox.serve_shared(mail, [owner], room, work)


@EACH
def test_a_mailbox_is_emptied_a_batch_at_a_time(mail: Mail, owner: str) -> None:
    posted, worker = post(mail, owner, 7), Worker(mail)

    serve(mail, owner, 3, worker)

    assert worker.batches == [posted[:3], posted[3:6], posted[6:]]


@EACH
def test_an_empty_mailbox_is_no_work(mail: Mail, owner: str) -> None:
    worker = Worker(mail)

    serve(mail, owner, 3, worker)

    assert worker.batches == []


@EACH
def test_a_large_mailbox_goes_behind_the_others_after_a_slice(
    mail: Mail, owner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "SLICE_SECONDS", -1)
    posted, worker = post(mail, owner, 7), Worker(mail)

    serve(mail, owner, 3, worker)

    assert worker.done == posted[:3]
    bells.flush(20)
    assert bells.flags().llen(f"dramatiq:{mail.queue}") == 1
    assert len(mailbox.claim(mail, {owner: 10}, 5)) == 4


@EACH
def test_what_fails_is_released_and_not_suspect(mail: Mail, owner: str) -> None:
    post(mail, owner, 2)

    def fail(_: Sequence[Claimed]) -> None:
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError):
        serve(mail, owner, 3, fail)

    assert [claimed.is_suspect for claimed in mailbox.claim(mail, {owner: 10}, 5)] == [False, False]


@EACH
def test_what_a_dead_worker_had_is_suspect(mail: Mail, owner: str) -> None:
    post(mail, owner, 2)
    mailbox.claim(mail, {owner: 1}, 5)
    end_leases(mail)

    with capture_logs() as lines:
        assert [claimed.is_suspect for claimed in mailbox.claim(mail, {owner: 10}, 5)] == [True, False]
    assert lines == [{"event": "mailbox.leases_ended", "table": mail.table, "rows": 1, "log_level": "warning"}]


def test_workers_never_have_an_exclusive_mailbox_at_the_same_time(owner: str) -> None:
    posted, worker, inside, overlaps = post(IN_ORDER, owner, 60), Worker(IN_ORDER), threading.Semaphore(1), []

    def work(batch: Sequence[Claimed]) -> None:
        if not inside.acquire(blocking=False):
            overlaps.append(batch)
        with transaction():
            worker(batch)
            inside.release()  # the commit lets the next worker in

    def serve_on() -> None:
        while one("SELECT count(*) FROM jobs WHERE due_at IS NOT NULL"):
            mailbox.serve(IN_ORDER, owner, 3, work)

    assert in_threads([serve_on] * 4) == [None] * 4
    assert overlaps == []
    assert worker.done == posted


def test_mail_of_one_table_does_not_exclude_that_of_another(owner: str) -> None:
    post(IN_ORDER, owner)
    post(RUNS, owner)
    batch = mailbox.claim(IN_ORDER, {owner: 1}, 5)

    with transaction():
        assert mailbox.holding(IN_ORDER, batch)
        [meanwhile] = in_threads([lambda: mailbox.claim(RUNS, {owner: 1}, 5)])

    assert len(meanwhile) == 1


# Shared


def test_what_waits_blocks_nothing_in_a_shared_mailbox(owner: str) -> None:
    [waiting] = post(RUNS, owner, due_in=60)
    [due] = post(RUNS, owner)
    worker = Worker(RUNS)

    serve(RUNS, owner, 3, worker)

    assert worker.done == [due]
    assert all_of("SELECT id FROM runs WHERE due_at IS NOT NULL") == [waiting]


def test_workers_share_a_large_mailbox_and_each_row_is_one_workers(owner: str) -> None:
    posted, worker = post(RUNS, owner, 60), Worker(RUNS)

    def serve_on() -> None:
        while one("SELECT count(*) FROM runs WHERE due_at IS NOT NULL"):
            serve(RUNS, owner, 3, worker)

    assert in_threads([serve_on] * 4) == [None] * 4
    assert sorted(worker.done) == posted


EXCLUSIVE = pytest.mark.parametrize(
    "serve_one",
    [partial(mailbox.serve, IN_ORDER), lambda owner, *rest: mailbox.serve_together(IN_ORDER, [owner], *rest)],
    ids=["alone", "together"],
)


def in_turn() -> list[bool]:
    """Of each message, whether it has its place in turn."""
    bells.flush(20)
    messages = bells.flags().hvals(f"dramatiq:{IN_ORDER.queue}.msgs")
    return [bells.OUT_OF_TURN not in json.loads(message)["options"] for message in messages]


@EXCLUSIVE
def test_what_a_slice_of_time_leaves_takes_no_place_among_new_bells(
    owner: str, monkeypatch: pytest.MonkeyPatch, serve_one: Callable[..., None]
) -> None:
    monkeypatch.setattr(serving, "SLICE_SECONDS", 0)
    post(IN_ORDER, owner, 3, due_in=-60)

    serve_one(owner, 1, Worker(IN_ORDER))

    assert in_turn() == [False]


@EXCLUSIVE
def test_what_comes_while_a_mailbox_is_served_is_new(
    owner: str, monkeypatch: pytest.MonkeyPatch, serve_one: Callable[..., None]
) -> None:
    monkeypatch.setattr(serving, "SLICE_SECONDS", 0)
    post(IN_ORDER, owner)
    worker = Worker(IN_ORDER)

    def work(batch: Sequence[Claimed]) -> None:
        post(IN_ORDER, owner, due_in=0)
        worker(batch)

    serve_one(owner, 1, work)

    assert in_turn() == [True]


@EXCLUSIVE
def test_a_mailbox_that_is_empty_when_the_slice_is_over_is_not_rung_for(
    owner: str, monkeypatch: pytest.MonkeyPatch, serve_one: Callable[..., None]
) -> None:
    monkeypatch.setattr(serving, "SLICE_SECONDS", 0)
    post(IN_ORDER, owner)
    bells.flags().set(f"bell:{IN_ORDER.queue}:{owner}", 1)

    serve_one(owner, 1, Worker(IN_ORDER))

    assert in_turn() == []
    assert not bells.flags().exists(f"bell:{IN_ORDER.queue}:{owner}")


def test_a_full_batch_of_a_shared_mailbox_rings_for_another_worker(owner: str) -> None:
    post(RUNS, owner, 3)
    rung: list[int] = []

    def work(batch: Sequence[Claimed]) -> None:
        bells.flush(20)
        rung.append(bells.flags().llen(f"dramatiq:{RUNS.queue}"))
        Worker(RUNS)(batch)

    serve(RUNS, owner, 3, work)

    assert rung == [1]


def test_shared_mailboxes_are_emptied_together_each_with_its_part_of_a_batch(owner: str) -> None:
    other, worker = open_mailbox("box-2"), Worker(RUNS)
    many, few = post(RUNS, owner, 7), post(RUNS, other, 2)

    mailbox.serve_shared(RUNS, [owner, other], 6, worker)

    assert [sorted(batch) for batch in worker.batches] == [sorted([*many[:3], *few]), many[3:]]
    assert bells.flags().exists(f"bell:{RUNS.queue}:{other}") == 0


def test_what_is_released_in_a_shared_mailbox_goes_behind_what_is_due(owner: str) -> None:
    first, second, third = post(RUNS, owner, 3)

    mailbox.release(RUNS, mailbox.claim(RUNS, {owner: 1}, 5))

    assert [claimed.id for claimed in mailbox.claim(RUNS, {owner: 10}, 5)] == [second, third, first]


@EACH
def test_what_fails_after_its_lease_is_suspect(mail: Mail, owner: str, monkeypatch: pytest.MonkeyPatch) -> None:
    post(mail, owner, 2)
    monkeypatch.setattr(serving, "LEASE_SECONDS", 0)

    def fail(_: Sequence[Claimed]) -> None:
        raise DatabaseAway[0]("terminating connection due to idle-in-transaction timeout")

    with pytest.raises(DatabaseAway):
        serve(mail, owner, 2, fail)

    end_leases(mail)
    assert [claimed.is_suspect for claimed in mailbox.claim(mail, {owner: 10}, 5)] == [True, True]

"""Marks leave nothing out and change no order, and with them a held snapshot makes claims of writes no slower."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from app.database import database, rows, transaction
from app.domain import writes
from app.domain.jobs import jobs
from app.domain.jobs.jobs import MAIL
from app.lib import ids
from app.mailbox import heads, marks, serving
from app.mailbox.marks import LOWEST, Marks
from app.models.jobs import Job
from tests.app.mailbox import steady
from tests.app.mailbox.boxes import end_leases, open_mailbox, post
from tests.cast import accept, all_of, elsewhere, in_threads, one

WAITING = "SELECT id FROM jobs WHERE workspace_id = %s AND due_at IS NOT NULL ORDER BY position LIMIT %s"


@pytest.fixture(autouse=True)
def marked(empty: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the first query reads a mailbox from its beginning."""
    monkeypatch.setattr(marks, "WHOLE_SECONDS", float("inf"))
    marks.of.cache_clear()


@pytest.fixture
def owner() -> str:
    return open_mailbox("box-1")


def take(owner: str, room: int = 1) -> list[str]:
    """Claims writes as a worker does and finishes them."""
    claimed = [row.id for row in serving._take(MAIL, owner, room)]
    rows("UPDATE jobs SET due_at = NULL, leased_until = NULL WHERE id = ANY(%s)", (claimed,))
    return claimed


def give_way(owner: str) -> str:
    """Claims the first write, which then gives way."""
    with transaction():
        [claimed] = serving._take(MAIL, owner, 1)
        rows("UPDATE jobs SET leased_until = NULL WHERE id = %s", (claimed.id,))
        jobs.give_way(claimed.id)
    return claimed.id


def mark(owner: str) -> int:
    return marks.of(MAIL).look([owner]).starts[owner]


# What claims read


@pytest.mark.usefixtures("no_autovacuum")
@pytest.mark.parametrize("is_analyzed", [True, False])
def test_a_claim_reads_at_most_twice_the_blocks_while_a_snapshot_is_held(owner: str, is_analyzed: bool) -> None:
    rows("TRUNCATE jobs CASCADE")
    if is_analyzed:
        rows("ANALYZE jobs")
    steady.go_on(MAIL, owner, 600)
    before = steady.blocks_of_claims(MAIL, owner)

    with steady.snapshot_held():
        steady.go_on(MAIL, owner, 3_000)
        if is_analyzed:  # it sees almost no mail
            rows("ANALYZE jobs")
        held = steady.blocks_of_claims(MAIL, owner)
        steady.go_on(MAIL, owner, 3_000)
        longer = steady.blocks_of_claims(MAIL, owner)
        marks.of.cache_clear()
        post(MAIL, owner, steady.ROOM)
        unmarked = steady.take(MAIL, owner)

    assert max(held, longer) <= 2 * before
    assert unmarked > 10 * before


# Nothing is left out, nothing is overtaken


def test_a_position_is_drawn_after_the_transaction_got_its_xid() -> None:
    default = "SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'jobs'::regclass AND adnum = 2"
    with transaction():
        assert one("SELECT pg_current_xact_id_if_assigned()::text") is None
        assert one(f"SELECT {one(default)}") > 0
        assert one("SELECT pg_current_xact_id_if_assigned()::text") is not None


def test_a_mark_follows_what_is_finished(owner: str) -> None:
    posted = post(MAIL, owner, 4)
    assert [take(owner) for _ in posted] == [[id] for id in posted]

    assert take(owner) == []

    assert mark(owner) > one("SELECT position FROM jobs WHERE id = %s", posted[0])


def test_a_write_that_came_after_the_look_began_can_be_claimed(owner: str) -> None:
    with transaction():  # whose now() is before the write
        steady.post(MAIL, owner, 1)

        assert heads.first_rows(MAIL, [owner])[owner] >= 0


def test_a_write_that_is_committed_late_is_found(owner: str) -> None:
    late: list[str] = []
    with elsewhere(lambda: late.extend(post(MAIL, owner))):
        early = post(MAIL, owner, 4)
        assert [take(owner) for _ in range(3)] == [[id] for id in early[:3]]

    assert take(owner, 10) == [*late, early[3]]


def test_writes_are_found_that_come_before_one_that_gave_way(owner: str) -> None:
    [bulk] = post(MAIL, owner)
    for _ in range(4):
        assert give_way(owner) == bulk
    after = post(MAIL, owner, 2)

    assert take(owner, 10) == [*after, bulk]


def test_a_write_that_comes_first_is_found_below_the_mark(owner: str) -> None:
    waiting = post(MAIL, owner, 5)
    for id in waiting[:4]:
        assert take(owner) == [id]
    stop = accept(owner, "broadcasts.pause", {}, ids.new("bct")).id

    assert take(owner) == [stop]
    assert take(owner) == [waiting[4]]


def test_jobs_of_kinds_that_became_known_are_found_below_the_mark_in_order(owner: str) -> None:
    unknown = post(MAIL, owner, 3)
    writes._set_aside(list(Job.select()))
    others = post(MAIL, owner, 4)
    assert [take(owner) for _ in range(3)] == [[id] for id in others[:3]]

    assert writes.take_up_known() == 3

    assert take(owner, 10) == [*unknown, others[3]]
    rows("UPDATE jobs SET due_at = NULL, unknown_since = now()")
    before = all_of("SELECT position FROM jobs ORDER BY position")[:3]
    writes.take_up_known()
    assert all_of("SELECT position FROM jobs ORDER BY position")[:3] == before


def test_what_a_dead_worker_had_is_first_again(owner: str) -> None:
    posted = post(MAIL, owner, 4)
    take(owner)
    take(owner)
    serving._take(MAIL, owner, 1)
    end_leases(MAIL)

    assert take(owner, 10) == posted[2:]


class Model:
    """Two processes that serve one mailbox, each with marks of its own, beside transactions that stay open.

    Every claim has to find what comes first of all that is committed.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.owner = ids.new("ws")
        self.open: list[Any] = []
        self.processes = Marks(), Marks()
        self._monkeypatch = monkeypatch
        monkeypatch.setattr(jobs, "MOST_PASSING", 3)
        monkeypatch.setattr(marks, "of", lambda _mail: self.processes[self.at])
        self.at = 0

    def accept(self) -> None:
        post(MAIL, self.owner)

    def accept_uncommitted(self) -> None:
        connection = database.connect_beside()
        with connection.cursor() as cursor:
            cursor.execute("SET idle_in_transaction_session_timeout = 0")
            values = ids.new("job"), self.owner
            cursor.execute(
                "INSERT INTO jobs (id, workspace_id, kind, trace_id) VALUES (%s, %s, 'contacts.upsert', 't')", values
            )
        self.open.append(connection)

    def end_newest(self) -> None:
        self._end(-1)

    def end_oldest(self) -> None:
        self._end(0)

    def stop(self) -> None:
        accept(self.owner, "broadcasts.pause", {}, ids.new("bct"))

    def give_way(self) -> None:
        if rows(WAITING, (self.owner, 1)):
            give_way(self.owner)

    def set_aside(self) -> None:
        if found := self._claim(1):
            writes._set_aside([Job.get_by_id(found[0])])

    def take_up(self) -> None:
        writes.take_up_known()

    def die(self) -> None:
        self._claim(2)
        end_leases(MAIL)

    def change_process(self) -> None:
        self.at = 1 - self.at

    def take_one(self) -> None:
        self._finish(self._claim(1))

    def take_three(self) -> None:
        self._finish(self._claim(3))

    def finish(self) -> None:
        """Ends all transactions; then nothing is left over."""
        while self.open:
            self._end(0)
        self.take_up()
        while found := self._claim(3):
            self._finish(found)
        assert one("SELECT count(*) FROM jobs WHERE workspace_id = %s AND due_at IS NOT NULL", self.owner) == 0

    def _claim(self, room: int) -> list[str]:
        expected = all_of(WAITING, self.owner, room)
        claimed = [row.id for row in serving._take(MAIL, self.owner, room)]
        assert claimed == expected
        return claimed

    def _finish(self, found: list[str]) -> None:
        rows("UPDATE jobs SET due_at = NULL, leased_until = NULL WHERE id = ANY(%s)", (found,))

    def _end(self, place: int) -> None:
        with suppress(IndexError):
            connection = self.open.pop(place)
            connection.commit()
            connection.close()


STEPS: list[Callable[[Model], None]] = [
    Model.accept,
    Model.accept_uncommitted,
    Model.end_newest,
    Model.end_oldest,
    Model.stop,
    Model.give_way,
    Model.set_aside,
    Model.take_up,
    Model.die,
    Model.change_process,
    Model.take_one,
    Model.take_three,
]


@given(
    steps=st.lists(st.sampled_from([*STEPS, Model.accept, Model.take_one, Model.take_one]), min_size=20, max_size=60)
)
@hypothesis(max_examples=40)
def test_every_claim_finds_what_comes_first(app: object, steps: list[Callable[[Model], None]]) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        model = Model(monkeypatch)
        try:
            for step in steps:
                step(model)
        finally:
            model.finish()


def test_many_writers_and_workers_leave_nothing_out_and_overtake_nothing(owner: str) -> None:
    posted: dict[int, list[str]] = {}
    taken: list[str] = []
    writing = [0, 1, 2]
    lock = threading.Lock()

    def write(number: int) -> None:
        posted[number] = []
        for size in (1, 2, 3) * 10:
            with transaction():
                posted[number] += post(MAIL, owner, size)
        writing.remove(number)

    def work() -> None:
        while True:
            is_over = not writing
            with lock:  # the order of `taken` is that of the claims
                found = take(owner, 5)
                taken.extend(found)
            if is_over and not found and not one("SELECT count(*) FROM jobs WHERE due_at IS NOT NULL"):
                return

    results = in_threads([*(lambda number=number: write(number) for number in (0, 1, 2)), work, work])  # type: ignore[misc]

    assert results == [None] * 5
    assert {number: [id for id in taken if id in made] for number, made in posted.items()} == posted


# Changes by hand


def test_what_was_made_mail_by_hand_is_found_when_the_whole_mailbox_is_read(
    owner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_hand, *_, last = post(MAIL, owner, 5)
    for _ in range(4):
        take(owner)
    rows("UPDATE jobs SET due_at = now() WHERE id = %s", (by_hand,))
    assert take(owner) == [last]
    assert take(owner) == []

    monkeypatch.setattr(marks, "WHOLE_SECONDS", 0.0)

    assert take(owner) == [by_hand]


def test_a_database_that_was_restored_begins_without_marks() -> None:
    made = Marks()
    for drawn in (10, 20, 30):
        made.settle(drawn, xid=100 + drawn, ended=100 + drawn)
    made.note(made.look(["a"]), {})
    assert made.look(["a"]).starts == {"a": 20}

    made.settle(15, xid=50, ended=50)

    assert made.look(["a"])[:2] == ({"a": LOWEST}, LOWEST)


def test_a_process_does_not_remember_more_than_so_many_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(marks, "MOST_MARKS", 2)
    made = Marks()
    for drawn in (10, 20):
        made.settle(drawn, xid=drawn, ended=drawn)
    for owner in "abcd":
        made.note(made.look([owner]), {})

    assert made.look("abcd").starts == {"a": LOWEST, "b": LOWEST, "c": LOWEST, "d": 10}

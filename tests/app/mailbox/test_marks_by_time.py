"""Marks of mail that is claimed by `due_at`: they leave nothing out, and a held snapshot makes claims no slower."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from app import mailbox
from app.database import database, rows
from app.domain.deliveries import attempts, lanes
from app.lib import ids
from app.mailbox import Claimed, Mail, heads, marks
from app.mailbox.marks import LOWEST, Marks
from tests.app.mailbox import steady
from tests.app.mailbox.boxes import RUNS, end_leases, open_mailbox
from tests.cast import all_of, elsewhere, one

FREE = """
    SELECT id FROM runs
    WHERE workspace_id = %s AND due_at <= now() AND (leased_until > now()) IS NOT TRUE ORDER BY due_at LIMIT %s
"""
POST = """
    INSERT INTO runs (id, workspace_id, automation_id, version, contact_id, trace_id, due_at)
    VALUES (%s, %s, 'aut', 1, 'con', 't', clock_timestamp())
"""
BY_TIME = [mail for mail in steady.KINDS if mail.is_by_time]


@pytest.fixture(autouse=True)
def marked(empty: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each claim but the first moves the mark, up to the present. Only the first two read the whole mailbox."""
    monkeypatch.setattr(marks, "CLAIMS", 1)
    monkeypatch.setattr(marks, "MARGIN", 0)
    monkeypatch.setattr(marks, "WHOLE_SECONDS", float("inf"))
    marks.of.cache_clear()


@pytest.fixture
def owner() -> str:
    return open_mailbox("box-1")


def post(owner: str, number: int = 1) -> list[str]:
    """Makes so many runs due, one after the other."""
    posted = [ids.new("run") for _ in range(number)]
    for each in posted:
        rows(POST, (each, owner))
    return posted


def claim(owner: str, room: int = 1) -> list[Claimed]:
    return mailbox.claim(RUNS, {owner: room}, 60)


def take(owner: str, room: int = 1) -> list[str]:
    """Claims runs and finishes them."""
    claimed = [row.id for row in claim(owner, room)]
    steady.finish(RUNS, claimed)
    return claimed


def settle(mail: Mail, owner: str) -> None:
    """Moves the mark of the mailbox to its first row, or to the present."""
    for _ in range(3):
        heads.first_rows(mail, [owner])


def mark(owner: str) -> int:
    return marks.of(RUNS).look([owner]).starts[owner]


# What claims read


@pytest.mark.usefixtures("no_autovacuum")
@pytest.mark.parametrize("mail", BY_TIME, ids=lambda mail: mail.table)
def test_a_claim_reads_hardly_more_blocks_while_a_snapshot_is_held(owner: str, mail: Mail) -> None:
    owner = steady.open_mailbox(mail, owner)
    steady.go_on(mail, owner, 2_000)
    rows(f"ANALYZE {mail.table}")
    before = steady.blocks_of_claims(mail, owner)

    with steady.snapshot_held():
        steady.go_on(mail, owner, 2_000)
        held = steady.blocks_of_claims(mail, owner)
        steady.go_on(mail, owner, 2_500)
        longer = steady.blocks_of_claims(mail, owner)
        marks.of.cache_clear()
        steady.post(mail, owner, steady.ROOM)
        unmarked = steady.take(mail, owner)

    assert max(held, longer) <= 1.5 * before < unmarked


# Nothing is left out, nothing is overtaken


def test_a_mark_is_at_the_first_unfinished_row(owner: str) -> None:
    post(owner, 4)
    first = "SELECT (extract(epoch FROM min(due_at)) * 1000000)::bigint FROM runs WHERE due_at IS NOT NULL"
    take(owner)
    take(owner)
    [leased] = claim(owner)
    settle(RUNS, owner)
    assert mark(owner) == one(first)

    steady.finish(RUNS, [leased.id])
    settle(RUNS, owner)
    assert mark(owner) == one(first)

    take(owner)
    settle(RUNS, owner)
    assert mark(owner) > one("SELECT (extract(epoch FROM max(created_at)) * 1000000)::bigint FROM runs")


def test_a_run_that_is_committed_late_is_found(owner: str) -> None:
    late: list[str] = []
    with elsewhere(lambda: late.extend(post(owner))):
        early = post(owner, 4)
        assert [take(owner) for _ in range(3)] == [[id] for id in early[:3]]

    assert take(owner, 10) == [*late, early[3]]


def test_what_a_dead_worker_had_is_first_again(owner: str) -> None:
    posted = post(owner, 4)
    take(owner)
    claim(owner)
    take(owner)
    end_leases(RUNS)

    assert take(owner, 10) == [posted[1], posted[3]]


def test_deliveries_are_found_when_their_endpoint_is_served_again(owner: str) -> None:
    steady.post(lanes.FAST, owner, 1)
    rows("UPDATE endpoints SET state = 'stopped'")
    for _ in range(4):
        assert mailbox.claim(lanes.FAST, {owner: 1}, 60) == []

    rows("UPDATE endpoints SET state = 'active'")

    assert len(mailbox.claim(lanes.FAST, {owner: 1}, 60)) == 1


def restrained(owner: str) -> list[str]:
    claimed, _ = attempts.claim_restrained(lanes.FAST, {owner: 1})
    return [each.claimed.id for each in claimed]


@pytest.mark.parametrize(
    ("mail", "claim_one"),
    [*((mail, partial(steady.claim, mail, room=1)) for mail in BY_TIME), (lanes.FAST, restrained)],
    ids=[*(mail.table for mail in BY_TIME), "restrained"],
)
def test_what_was_made_mail_by_hand_is_found_when_the_whole_mailbox_is_read(
    owner: str, mail: Mail, claim_one: Callable[[str], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = steady.open_mailbox(mail, owner)
    if claim_one is restrained:
        rows("UPDATE endpoints SET max_per_second = 1000")
    steady.post(mail, owner, 1)
    claimed = claim_one(owner)
    steady.finish(mail, claimed)
    settle(mail, owner)
    by_hand = "due_at = now() - interval '1 minute'"
    rows(f"UPDATE {mail.table} SET {by_hand}, claim = 0" + (", status = 'pending'" if mail is lanes.FAST else ""))
    assert claim_one(owner) == []

    monkeypatch.setattr(marks, "WHOLE_SECONDS", 0.0)

    assert claim_one(owner) == claimed


def claims(made: Marks, *owners: str, number: int = 3) -> list[str]:
    """Makes so many claims from these mailboxes, and looks at those that are behind. Returns these."""
    found = []
    for _ in range(number):
        if behind := made.behind(owners):
            made.note(made.look(behind), {})
            found += behind
    return found


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Marks:
    """Marks at a time that is settled up to 20."""
    monkeypatch.setattr(marks, "CLAIMS", 3)
    monkeypatch.setattr(marks, "WHOLE_SECONDS", 10.0)
    made = Marks(marks.SLACK)
    for time in (10, 20, 30):
        made.settle(time, xid=time, ended=time)
    return made


def test_a_mark_moves_every_so_many_claims_from_its_mailbox(made: Marks) -> None:
    assert claims(made, "a", number=2) == claims(made, "b", number=2) == []
    assert made.starts(["a", "b"]) == {"a": LOWEST, "b": LOWEST}

    for _ in range(3):
        assert claims(made, "a") == ["a"]
        assert claims(made, "b") == ["b"]

    assert made.starts(["a", "b"]) == {"a": 20, "b": 20}


def test_mailboxes_that_are_claimed_from_together_are_looked_at_together(made: Marks) -> None:
    claims(made, "a")
    claims(made, "b", number=4)
    assert claims(made, "a", "b") == ["b", "a", "b"]

    assert claims(made, "a", "b", number=30) == ["a", "b"] * 10


def test_busy_mailboxes_are_read_from_their_beginning_now_and_then_and_quiet_ones_have_no_mark(
    made: Marks, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr(marks.time, "monotonic", lambda: now)
    assert claims(made, "busy", "quiet") == ["busy", "quiet"]
    claims(made, "busy")
    assert made.starts(["busy", "quiet"]) == {"busy": 20, "quiet": 20}

    now = 110.0

    assert made.look(["busy"]).starts == {"busy": LOWEST}
    assert claims(made, "busy", "quiet", number=1) == ["busy"]
    assert made.starts(["busy", "quiet"]) == {"busy": 20, "quiet": LOWEST}
    assert made.look(["busy"]).starts == {"busy": 20}


def test_the_time_of_a_whole_look_is_when_it_began(made: Marks, monkeypatch: pytest.MonkeyPatch) -> None:
    """What became mail by hand while it read could be behind what it had read."""
    now = 100.0
    monkeypatch.setattr(marks.time, "monotonic", lambda: now)
    look = made.look(["a"])
    now = 109.0

    made.note(look, {})

    assert made.look(["a"]).starts == {"a": 20}
    now = 110.0
    assert made.look(["a"]).starts == {"a": LOWEST}


def test_marks_stay_if_threads_note_their_looks_out_of_order() -> None:
    made = Marks(marks.SLACK)
    for now in (10, 20, 30):
        made.settle(now, xid=now, ended=now)
    made.note(made.look(["a"]), {})

    made.settle(15, xid=15, ended=15)

    assert made.look(["a"])[:2] == ({"a": 20}, 20)
    assert made.settle(40, xid=40, ended=40) == 30


class Model:
    """Two processes that serve one mailbox, each with marks of its own, beside transactions that stay open.

    Every claim has to find the first of all free rows that are committed.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.owner = ids.new("ws")
        self.open: list[Any] = []
        self.held: list[Claimed] = []
        self.processes = Marks(marks.SLACK), Marks(marks.SLACK)
        self.at = 0
        monkeypatch.setattr(marks, "of", lambda _mail: self.processes[self.at])

    def begin(self) -> None:
        post(self.owner)

    def begin_uncommitted(self) -> None:
        connection = database.connect_beside()
        with connection.cursor() as cursor:
            cursor.execute("SET idle_in_transaction_session_timeout = 0")
            cursor.execute(POST, (ids.new("run"), self.owner))
        self.open.append(connection)

    def end_newest(self) -> None:
        self._end(-1)

    def end_oldest(self) -> None:
        self._end(0)

    def hold(self) -> None:
        self.held += self._claim(2)

    def finish_held(self) -> None:
        steady.finish(RUNS, [row.id for row in self.held])
        self.held = []

    def release_held(self) -> None:
        for each in self.held:  # one by one, so that no two are due at the same time
            mailbox.release(RUNS, [each])
        self.held = []

    def die(self) -> None:
        end_leases(RUNS)
        self.held = []

    def change_process(self) -> None:
        self.at = 1 - self.at

    def take_one(self) -> None:
        steady.finish(RUNS, [row.id for row in self._claim(1)])

    def take_three(self) -> None:
        steady.finish(RUNS, [row.id for row in self._claim(3)])

    def finish(self) -> None:
        """Ends all transactions and leases; then nothing is left over."""
        while self.open:
            self._end(0)
        self.die()
        while found := self._claim(3):
            steady.finish(RUNS, [row.id for row in found])
        assert one("SELECT count(*) FROM runs WHERE workspace_id = %s AND due_at IS NOT NULL", self.owner) == 0

    def _claim(self, room: int) -> list[Claimed]:
        expected = all_of(FREE, self.owner, room)
        claimed = claim(self.owner, room)
        assert [row.id for row in claimed] == expected
        return claimed

    def _end(self, place: int) -> None:
        with suppress(IndexError):
            connection = self.open.pop(place)
            connection.commit()
            connection.close()


STEPS: list[Callable[[Model], None]] = [
    Model.begin,
    Model.begin_uncommitted,
    Model.end_newest,
    Model.end_oldest,
    Model.hold,
    Model.finish_held,
    Model.release_held,
    Model.die,
    Model.change_process,
    Model.take_one,
    Model.take_three,
]


@given(steps=st.lists(st.sampled_from([*STEPS, Model.begin, Model.take_one, Model.take_one]), min_size=20, max_size=60))
@hypothesis(max_examples=25)
def test_every_claim_finds_what_comes_first(app: object, steps: list[Callable[[Model], None]]) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        model = Model(monkeypatch)
        try:
            for step in steps:
                step(model)
        finally:
            model.finish()

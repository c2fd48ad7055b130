"""Marks of deaths: only a worker that dies leaves one."""

from __future__ import annotations

import peewee
import pytest

from app import mailbox
from app.database import rows
from app.mailbox import deaths
from tests.app.mailbox.boxes import IN_ORDER, end_leases, open_mailbox, post
from tests.cast import all_of, one

pytestmark = pytest.mark.usefixtures("empty")


@pytest.fixture
def owner() -> str:
    return open_mailbox("box-1")


def marks() -> list[int]:
    return all_of("SELECT deaths FROM jobs ORDER BY position")


def test_a_row_is_marked_only_while_it_is_worked_on(owner: str) -> None:
    post(IN_ORDER, owner, 3)
    batch = mailbox.claim(IN_ORDER, {owner: 3}, 5)

    with mailbox.in_progress(IN_ORDER, batch[1], batch):
        assert marks() == [0, 1, 0]
    assert marks() == [0, 0, 0]


def test_an_error_takes_the_mark_back(owner: str) -> None:
    post(IN_ORDER, owner)
    batch = mailbox.claim(IN_ORDER, {owner: 1}, 5)

    with pytest.raises(RuntimeError), mailbox.in_progress(IN_ORDER, batch[0], batch):
        raise RuntimeError("broken")

    assert marks() == [0]


def test_a_mark_is_taken_back_when_the_database_is_there_again(owner: str, monkeypatch: pytest.MonkeyPatch) -> None:
    post(IN_ORDER, owner)
    batch = mailbox.claim(IN_ORDER, {owner: 1}, 5)
    real, tries = deaths.count, iter([True, True, False])

    def lost(*arguments: str) -> int:
        if next(tries):
            raise peewee.OperationalError("the database is away")
        return real(*arguments)

    monkeypatch.setattr(deaths, "PAUSE_SECONDS", 0)
    with mailbox.in_progress(IN_ORDER, batch[0], batch):
        monkeypatch.setattr(deaths, "count", lost)

    assert marks() == [0]


def test_marking_renews_the_leases_of_the_batch(owner: str) -> None:
    post(IN_ORDER, owner, 2)
    batch = mailbox.claim(IN_ORDER, {owner: 2}, 0)

    with mailbox.in_progress(IN_ORDER, batch[0], batch):
        assert one("SELECT count(*) FROM jobs WHERE leased_until > now()") == 2


def test_a_worker_that_lost_its_claim_marks_nothing_and_takes_nothing_back(owner: str) -> None:
    post(IN_ORDER, owner)
    late = mailbox.claim(IN_ORDER, {owner: 1}, 5)
    end_leases(IN_ORDER)
    mailbox.claim(IN_ORDER, {owner: 1}, 5)
    rows("UPDATE jobs SET deaths = 1")

    with mailbox.in_progress(IN_ORDER, late[0], late):
        assert marks() == [1]
    assert marks() == [1]

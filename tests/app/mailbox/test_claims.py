from __future__ import annotations

import threading
from collections import Counter
from datetime import timedelta

import pytest

from app import database, mailbox
from app.database import rows, transaction
from app.mailbox import Claimed, Mail
from tests.app.mailbox.boxes import IN_ORDER, RUNS, SHARED, end_leases, open_mailbox, post
from tests.cast import all_of, in_threads, one

BOTH = pytest.mark.parametrize("mail", [IN_ORDER, SHARED], ids=["in order", "shared"])

LEASE_SECONDS = 20

pytestmark = pytest.mark.usefixtures("empty")


@pytest.fixture
def owner() -> str:
    """The owner of a mailbox in either mode: there is a workspace and an active endpoint of that name."""
    return open_mailbox("box-1")


def claim(mail: Mail, rooms: dict[str, int]) -> list[Claimed]:
    return mailbox.claim(mail, rooms, LEASE_SECONDS)


def finish(mail: Mail, *batch: Claimed) -> None:
    rows(f"UPDATE {mail.table} SET due_at = NULL, leased_until = NULL WHERE id = ANY(%s)", ([row.id for row in batch],))


def holds(mail: Mail, batch: list[Claimed]) -> bool:
    with transaction():
        return mailbox.holding(mail, batch)


@BOTH
def test_mail_is_taken_in_its_order_up_to_the_room(mail: Mail, owner: str) -> None:
    first, second, _ = post(mail, owner, 3)

    taken = claim(mail, {owner: 2})

    assert [(row.id, row.owner, row.claim) for row in taken] == [(first, owner, 1), (second, owner, 1)]


@BOTH
def test_an_empty_mailbox_gives_nothing(mail: Mail, owner: str) -> None:
    assert claim(mail, {owner: 10}) == []
    assert claim(mail, {}) == []


@BOTH
def test_mail_of_others_is_left_alone(mail: Mail, owner: str) -> None:
    post(mail, open_mailbox("box-2"))

    assert claim(mail, {owner: 10}) == []


@BOTH
def test_several_mailboxes_are_looked_into_at_once(mail: Mail, owner: str) -> None:
    other = open_mailbox("box-2")
    post(mail, owner, 3)
    post(mail, other, 3)

    taken = claim(mail, {owner: 2, other: 1})

    assert Counter(row.owner for row in taken) == {owner: 2, other: 1}


@BOTH
def test_what_is_taken_is_not_taken_again_while_its_lease_runs(mail: Mail, owner: str) -> None:
    post(mail, owner)
    before = database.now()
    claim(mail, {owner: 10})
    after = database.now()

    assert claim(mail, {owner: 10}) == []
    taken_at = one(f"SELECT leased_until FROM {mail.table}") - timedelta(seconds=LEASE_SECONDS)
    assert before <= taken_at <= after


@BOTH
def test_mail_whose_lease_ended_is_taken_again_under_the_next_number(mail: Mail, owner: str) -> None:
    [identifier] = post(mail, owner)
    claim(mail, {owner: 10})
    end_leases(mail)

    [taken] = claim(mail, {owner: 10})
    assert (taken.id, taken.claim) == (identifier, 2)


@BOTH
def test_finished_mail_is_never_taken(mail: Mail, owner: str) -> None:
    post(mail, owner)
    finish(mail, *claim(mail, {owner: 10}))
    end_leases(mail)

    assert claim(mail, {owner: 10}) == []


@BOTH
def test_mail_that_is_due_later_is_left(mail: Mail, owner: str) -> None:
    post(mail, owner, due_in=60)

    assert claim(mail, {owner: 10}) == []


@BOTH
def test_a_worker_holds_what_it_took(mail: Mail, owner: str) -> None:
    post(mail, owner, 2)

    assert holds(mail, claim(mail, {owner: 10})) is True


@BOTH
def test_a_worker_still_holds_what_nobody_took_after_its_lease(mail: Mail, owner: str) -> None:
    post(mail, owner, 2)
    batch = claim(mail, {owner: 10})
    end_leases(mail)

    assert holds(mail, batch) is True


@BOTH
def test_a_late_worker_does_not_hold_what_another_took(mail: Mail, owner: str) -> None:
    post(mail, owner, 2)
    late = claim(mail, {owner: 10})
    end_leases(mail)
    present = claim(mail, {owner: 10})

    assert holds(mail, late) is False
    assert holds(mail, present) is True


@BOTH
def test_a_late_worker_does_not_hold_a_batch_of_which_one_is_finished(mail: Mail, owner: str) -> None:
    post(mail, owner, 2)
    batch = claim(mail, {owner: 10})
    finish(mail, batch[0])

    assert holds(mail, batch) is False


# In order


def test_in_order_nothing_behind_leased_mail_is_taken(owner: str) -> None:
    post(IN_ORDER, owner, 3)
    claim(IN_ORDER, {owner: 1})

    assert claim(IN_ORDER, {owner: 10}) == []


def test_in_order_nothing_is_taken_while_a_worker_records(owner: str) -> None:
    post(IN_ORDER, owner, 2)
    batch = claim(IN_ORDER, {owner: 1})
    end_leases(IN_ORDER)

    with transaction():
        assert mailbox.holding(IN_ORDER, batch)
        [meanwhile] = in_threads([lambda: claim(IN_ORDER, {owner: 10})])

    assert meanwhile == []
    assert len(claim(IN_ORDER, {owner: 10})) == 2


def test_in_order_other_mailboxes_do_not_wait(owner: str) -> None:
    other = open_mailbox("box-2")
    post(IN_ORDER, owner)
    post(IN_ORDER, other)
    batch = claim(IN_ORDER, {owner: 1})

    with transaction():
        assert mailbox.holding(IN_ORDER, batch)
        [meanwhile] = in_threads([lambda: claim(IN_ORDER, {other: 10})])

    assert len(meanwhile) == 1


def test_in_order_workers_never_overlap_and_nothing_is_done_twice_or_out_of_order(owner: str) -> None:
    posted = post(IN_ORDER, owner, 60)
    done: list[str] = []
    inside = threading.Semaphore(1)
    overlaps: list[str] = []

    def work() -> None:
        while one("SELECT count(*) FROM jobs WHERE due_at IS NOT NULL"):
            for batch in filter(None, [claim(IN_ORDER, {owner: 3})]):
                with transaction():
                    if mailbox.holding(IN_ORDER, batch):
                        alone = inside.acquire(blocking=False)
                        overlaps.extend([] if alone else [batch[0].id])
                        done.extend(row.id for row in batch)
                        finish(IN_ORDER, *batch)
                        inside.release()

    assert in_threads([work] * 6) == [None] * 6
    assert overlaps == []
    assert done == posted


# Shared


def test_shared_workers_take_each_row_once(owner: str) -> None:
    posted = post(SHARED, owner, 100)

    def take() -> list[str]:
        taken = []
        while batch := claim(SHARED, {owner: 7}):
            taken += [row.id for row in batch]
        return taken

    results = in_threads([take] * 6)

    assert sorted(identifier for taken in results for identifier in taken) == sorted(posted)


def test_shared_mail_behind_leased_mail_is_taken(owner: str) -> None:
    _, second = post(SHARED, owner, 2)
    claim(SHARED, {owner: 1})

    assert [row.id for row in claim(SHARED, {owner: 10})] == [second]


def test_shared_mail_of_an_owner_who_is_not_served_is_left(owner: str) -> None:
    post(SHARED, owner)
    rows("UPDATE endpoints SET state = 'stopped'")

    assert claim(SHARED, {owner: 10}) == []


def test_shared_mail_has_waited_since_it_was_due_or_its_lease_ended(owner: str) -> None:
    post(SHARED, owner, due_in=-100)
    [first] = claim(SHARED, {owner: 1})
    end_leases(SHARED, seconds_ago=10)
    [again] = claim(SHARED, {owner: 1})

    assert 100 <= first.waited < 110
    assert 10 <= again.waited < 20


def test_taking_shared_mail_changes_no_index(owner: str) -> None:
    post(SHARED, owner, 200)
    before = changed_beside_indexes(SHARED)

    claim(SHARED, {owner: 200})

    assert changed_beside_indexes(SHARED) == before + 200


def changed_beside_indexes(mail: Mail) -> int:
    """How many rows of this table were changed without a new entry in any index."""
    rows("SELECT pg_stat_force_next_flush()")
    return int(one("SELECT sum(n_tup_hot_upd) FROM pg_stat_user_tables WHERE relname LIKE %s", f"{mail.table}%"))


def test_claiming_marks_a_job_as_running_since_its_first_claim(owner: str) -> None:
    post(IN_ORDER, owner)
    claim(IN_ORDER, {owner: 1})
    [(status, first)] = database.rows("SELECT status, started_at FROM jobs")
    end_leases(IN_ORDER)
    claim(IN_ORDER, {owner: 1})

    assert status == "running"
    assert all_of("SELECT started_at FROM jobs") == [first]


# Mail that is taken alone


def make_alone(identifier: str) -> None:
    rows("UPDATE jobs SET kind = 'contacts.import' WHERE id = %s", (identifier,))


def test_what_is_to_be_alone_is_taken_without_those_around_it(owner: str) -> None:
    first, alone, other_alone, last = post(IN_ORDER, owner, 4)
    make_alone(alone)
    make_alone(other_alone)

    taken = []
    while batch := claim(IN_ORDER, {owner: 10}):
        taken.append([row.id for row in batch])
        finish(IN_ORDER, *batch)

    assert taken == [[first], [alone], [other_alone], [last]]


@pytest.mark.parametrize("off", ["nothing", "hashjoin, mergejoin", "material"])
def test_whatever_the_plan_no_more_is_claimed_than_there_is_room_for(off: str, owner: str) -> None:
    """The planner takes the mailbox for nearly empty, and may read it once for each of its rows."""
    post(RUNS, owner)
    rows("VACUUM ANALYZE runs")
    post(RUNS, owner, 50)
    rows("DEALLOCATE ALL")
    database.database.connection().prepared.clear()

    with transaction():
        for each in off.split(", ") if off != "nothing" else ():
            rows(f"SET LOCAL enable_{each} = off")
        claimed = mailbox.claim(RUNS, {owner: 20}, 60)

    assert len(claimed) == 20

"""Outcomes, of requests that runs wait for."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from app import mailbox
from app.database import rows
from app.domain.automations.http_requests import MAIL, WAITING
from app.mailbox import Claimed, PutOff
from tests.cast import Api, all_of, one
from tests.requesting import make_request


@pytest.fixture
def claimed(api: Api) -> Claimed:
    make_request(api.workspace_id)
    return claim(api)


def claim(api: Api) -> Claimed:
    [claimed] = mailbox.claim(MAIL, {api.workspace_id: 1}, 60)
    return claimed


def put_off(claimed: Claimed) -> None:
    mailbox.put_off(WAITING, [PutOff(claimed, 60)])


def drop(claimed: Claimed) -> None:
    mailbox.drop(MAIL, [claimed])


def release(claimed: Claimed) -> None:
    mailbox.release(MAIL, [claimed])


EACH = pytest.mark.parametrize("record", [put_off, drop, release])


def row() -> tuple[object, ...]:
    [found] = rows("SELECT tries, claim, due_at, leased_until, next_attempt_at FROM run_requests")
    return found


def test_a_row_that_is_put_off_is_no_mail_until_its_time_has_come(api: Api, claimed: Claimed) -> None:
    put_off(claimed)

    assert rows("SELECT tries, due_at, leased_until FROM run_requests") == [(1, None, None)]
    assert one("SELECT extract(epoch FROM next_attempt_at - now()) FROM run_requests") == pytest.approx(60, abs=5)
    assert mailbox.claim(MAIL, {api.workspace_id: 1}, 60) == []


def test_a_row_is_put_off_without_spending_a_try_or_for_good(api: Api, claimed: Claimed) -> None:
    mailbox.put_off(WAITING, [PutOff(claimed, None, is_spent=False)])

    assert rows("SELECT tries, due_at, next_attempt_at FROM run_requests") == [(0, None, None)]


def test_rows_are_put_off_each_in_its_own_way(api: Api) -> None:
    for _ in range(2):
        make_request(api.workspace_id)
    first, second = mailbox.claim(MAIL, {api.workspace_id: 2}, 60)

    mailbox.put_off(WAITING, [PutOff(first, 10), PutOff(second, 1_000, is_spent=False)])

    query = "SELECT tries, next_attempt_at > now() + interval '500 seconds' FROM run_requests WHERE id = %s"
    assert [rows(query, (each.id,)) for each in (first, second)] == [[(1, False)], [(0, True)]]


def test_only_rows_for_which_the_condition_holds_are_dropped(api: Api) -> None:
    for _ in range(2):
        make_request(api.workspace_id)
    batch = mailbox.claim(MAIL, {api.workspace_id: 2}, 60)
    rows("UPDATE run_requests SET tries = 3 WHERE id = %s", (batch[0].id,))

    assert mailbox.drop(MAIL, batch, "mail.tries = 3") == {batch[0].id}

    assert all_of("SELECT id FROM run_requests") == [batch[1].id]


@EACH
def test_an_outcome_of_an_old_claim_changes_nothing(
    api: Api, claimed: Claimed, record: Callable[[Claimed], None]
) -> None:
    rows("UPDATE run_requests SET leased_until = NULL")
    claim(api)
    before = row()

    record(claimed)

    assert row() == before


@EACH
def test_an_outcome_counts_once_also_when_the_row_is_due_again(
    claimed: Claimed, record: Callable[[Claimed], None]
) -> None:
    put_off(claimed)
    rows("UPDATE run_requests SET next_attempt_at = now()")
    assert mailbox.wake(WAITING)
    before = row()

    record(claimed)

    assert row() == before


def test_nothing_is_recorded_of_nothing(api: Api) -> None:
    mailbox.put_off(WAITING, [])

    assert mailbox.drop(MAIL, []) == set()

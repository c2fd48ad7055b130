from __future__ import annotations

import pytest

from app import mailbox
from app.database import rows
from app.domain.deliveries import lanes
from app.mailbox import Mail
from tests.app.mailbox.boxes import IN_ORDER, RUNS, SHARED, end_leases, open_mailbox, post

ALL = pytest.mark.parametrize("mail", [IN_ORDER, SHARED, RUNS], ids=["in order", "shared", "runs"])

pytestmark = pytest.mark.usefixtures("empty")


def waiting(mail: Mail, limit: int = 1_000) -> int:
    return mailbox.count_waiting(mail, limit)[0][mail.table]


@ALL
def test_mail_waits_while_it_is_due_and_nobody_has_it(mail: Mail) -> None:
    post(mail, open_mailbox("a"), 3)
    post(mail, "b", 2)
    post(mail, "c", 5, due_in=60)
    assert waiting(mail) == 5

    mailbox.claim(mail, {"a": 2}, 20)
    assert waiting(mail) == 3

    end_leases(mail)
    assert waiting(mail) == 5

    rows(f"UPDATE {mail.table} SET due_at = NULL")
    assert waiting(mail) == 0


@ALL
def test_mail_is_counted_part_by_part_and_each_row_once(mail: Mail) -> None:
    for owner in ("a", "b", "c"):
        post(mail, owner, 5)

    first, place = mailbox.count_waiting(mail, 7)
    second, after = mailbox.count_waiting(mail, 7, place)
    third, end = mailbox.count_waiting(mail, 7, after)

    assert [found[mail.table] for found in (first, second, third)] == [7, 7, 1]
    assert end is None


def test_what_became_due_at_once_is_counted_at_once() -> None:
    post(SHARED, "a", 9)
    rows("UPDATE deliveries SET due_at = now()")

    assert mailbox.count_waiting(SHARED, 4) == ({"deliveries": 9, "slow_deliveries": 0}, ("a", rows_due_at()))


def rows_due_at() -> object:
    return rows("SELECT max(due_at) FROM deliveries")[0][0]


@pytest.mark.parametrize(
    "change",
    ["state = 'stopped'", "state = 'deleted'", "probe_at = now() + interval '1 minute'"],
    ids=["stopped", "deleted", "probed"],
)
def test_what_an_endpoint_that_is_not_served_has_does_not_wait(change: str) -> None:
    post(SHARED, open_mailbox("a"), 3)
    post(SHARED, open_mailbox("b"), 2)

    rows(f"UPDATE endpoints SET {change} WHERE id = 'a'")

    assert waiting(SHARED) == 2


def test_slow_endpoints_are_counted_apart() -> None:
    post(SHARED, open_mailbox("a"), 3, due_in=-10)
    post(SHARED, open_mailbox("b"), 2, due_in=-100)
    rows("UPDATE endpoints SET slow_until = now() + interval '1 minute' WHERE id = 'b'")

    assert mailbox.count_waiting(SHARED, 100)[0] == {"deliveries": 3, "slow_deliveries": 2}
    oldest = mailbox.overdue(SHARED, 1, 100)[2]
    assert 10 <= oldest["deliveries"] < 100 <= oldest["slow_deliveries"]


@pytest.mark.parametrize(
    "change",
    ["max_per_second = 1, paced_until = now() + interval '1 second'", "ordered = true"],
    ids=["a rate", "an order"],
)
def test_what_goes_out_slowly_on_purpose_waits_but_does_not_age(change: str) -> None:
    [first, *_] = post(lanes.FAST, open_mailbox("a"), 3, due_in=-100)
    rows(f"UPDATE endpoints SET {change}")
    # The first is tried again later; in order, the others wait for it.
    rows("UPDATE deliveries SET due_at = NULL, next_attempt_at = now() + interval '1 hour' WHERE id = %s", (first,))

    assert waiting(lanes.FAST) == 2
    assert mailbox.overdue(lanes.FAST, 1, 100)[2]["deliveries"] == 0

from __future__ import annotations

import pytest

from app import mailbox
from app.database import rows
from app.mailbox import Mail
from tests.app.mailbox.boxes import IN_ORDER, SHARED, end_leases, open_mailbox, post
from tests.cast import one

BOTH = pytest.mark.parametrize("mail", [IN_ORDER, SHARED], ids=["in order", "shared"])

pytestmark = pytest.mark.usefixtures("empty")


@pytest.fixture
def owner() -> str:
    """The owner of a mailbox in either mode: there is a workspace and an active endpoint of that name."""
    return open_mailbox("box-1")


def late(mail: Mail, seconds: float, limit: int) -> list[str]:
    return mailbox.overdue(mail, seconds, limit)[0]


def oldest(mail: Mail, limit: int, after: str = "") -> float:
    return mailbox.overdue(mail, 5, limit, after)[2][mail.table]


@BOTH
def test_owners_with_mail_due_for_long_are_overdue(mail: Mail) -> None:
    post(mail, "b", 3, due_in=-100)
    post(mail, "a", due_in=-100)
    post(mail, "c", due_in=-20)
    post(mail, "d", due_in=60)

    assert late(mail, 50, 10) == ["a", "b"]
    assert late(mail, 10, 10) == ["a", "b", "c"]


@BOTH
def test_mailboxes_are_looked_into_a_page_at_a_time(mail: Mail) -> None:
    for name in "dacb":
        post(mail, name, 2, due_in=60 if name == "b" else -10)

    assert mailbox.overdue(mail, 5, 2)[:2] == (["a"], "b")
    assert mailbox.overdue(mail, 5, 2, after="b")[:2] == (["c", "d"], "")
    assert mailbox.overdue(mail, 5, 2, after="d")[:2] == ([], "")
    assert mailbox.overdue(mail, 5, 10)[:2] == (["a", "c", "d"], "")


@BOTH
def test_the_age_of_the_oldest_mail_is_told(mail: Mail) -> None:
    post(mail, "a", due_in=-10)
    post(mail, "b", due_in=-100)
    post(mail, "c", due_in=60)

    assert 100 <= oldest(mail, 10) < 200
    assert 10 <= oldest(mail, 1) < 100
    assert oldest(mail, 10, after="b") == 0
    assert oldest(mail, 10, after="c") == 0


@BOTH
def test_mail_under_a_lease_is_not_overdue(mail: Mail, owner: str) -> None:
    post(mail, owner, due_in=-10)
    mailbox.claim(mail, {owner: 1}, 20)

    assert late(mail, 0, 10) == []


@BOTH
def test_an_owner_whose_worker_died_is_overdue(mail: Mail, owner: str) -> None:
    post(mail, owner, due_in=-10)
    mailbox.claim(mail, {owner: 1}, 20)
    end_leases(mail, seconds_ago=10)

    assert late(mail, 5, 10) == [owner]


@BOTH
def test_finished_mail_is_not_overdue(mail: Mail, owner: str) -> None:
    post(mail, owner, 2, due_in=-10)
    rows(f"UPDATE {mail.table} SET due_at = NULL")

    assert late(mail, 0, 10) == []


@BOTH
def test_looking_for_overdue_mail_reads_an_index(mail: Mail) -> None:
    for name in ("a", "b", "c"):
        post(mail, name, 200, due_in=-10)
    rows(f"ANALYZE {mail.table}")
    before = scans(mail)

    assert late(mail, 5, 100) == ["a", "b", "c"]

    assert scans(mail) == before


def scans(mail: Mail) -> int:
    """How often this table was read from end to end."""
    rows("SELECT pg_stat_force_next_flush()")
    return int(one("SELECT sum(seq_scan) FROM pg_stat_user_tables WHERE relname LIKE %s", f"{mail.table}%"))

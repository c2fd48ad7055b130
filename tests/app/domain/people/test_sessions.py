from __future__ import annotations

import pytest

from app import database
from app.domain.people import members, sessions, workspaces
from app.domain.people.sessions import Membership
from app.domain.retention import delete_old
from app.lib import clock
from tests.cast import all_of, everything_stored, one
from tests.people import ADDRESS, make_account, make_member, signed, signed_in

pytestmark = pytest.mark.usefixtures("empty")


@pytest.fixture
def shop() -> str:
    return str(workspaces.create("Shop")[0].id)


def test_a_session_tells_who_it_is_and_where_they_belong(shop: str) -> None:
    account, member = make_member(shop, role="admin")
    bakery = workspaces.create("Bakery")[0]
    workspaces.create("Theirs")
    second = members.add(bakery.id, account.id, "agent")

    found = signed(account)

    assert (found.account_id, found.email, found.is_support) == (account.id, "ada@example.com", False)
    assert found.memberships == (
        Membership(member.id, shop, "Shop", "admin", "available"),
        Membership(second.id, bakery.id, "Bakery", "agent", "available"),
    )
    assert found.membership(bakery.id) == found.memberships[1]
    assert found.membership("ws_other") is None


def test_somebody_may_belong_nowhere() -> None:
    found = signed(make_account(is_support=True))

    assert (found.is_support, found.memberships) == (True, ())


def test_the_token_is_not_stored() -> None:
    token = signed_in(make_account())

    assert len(token) >= 43
    assert token not in everything_stored()


@pytest.mark.parametrize("token", ["", "x", "\0", "ü" * 1000, "' OR true --"])
def test_what_is_no_token_finds_nobody(token: str) -> None:
    signed_in(make_account())

    assert sessions.find(token) is None


def test_each_sign_in_has_a_token_of_its_own() -> None:
    account = make_account()

    assert signed_in(account) != signed_in(account)


def test_a_session_ends_after_a_week_without_use() -> None:
    token = signed_in(make_account())

    with clock.moved_by(days=6, hours=23):
        assert sessions.find(token) is not None
    with clock.moved_by(days=13, hours=22):
        assert sessions.find(token) is not None
    with clock.moved_by(days=21):
        assert sessions.find(token) is None


def test_a_session_ends_after_thirty_days_of_use() -> None:
    token = signed_in(make_account())

    for day in range(30):
        with clock.moved_by(days=day):
            assert sessions.find(token) is not None
    with clock.moved_by(days=30, minutes=1):
        assert sessions.find(token) is None


def test_a_session_that_was_ended_is_over_at_once() -> None:
    account = make_account()
    first, second = signed_in(account), signed_in(account)
    found = sessions.find(first)
    assert found is not None

    sessions.end(found.session_id)
    sessions.end(found.session_id)

    assert sessions.find(first) is None
    assert sessions.find(second) is not None


def test_all_sessions_but_one_can_be_ended() -> None:
    account, other = make_account(), make_account("bob@example.com")
    ended, kept, theirs = signed_in(account), signed_in(account), signed_in(other)
    current = sessions.find(kept)
    assert current is not None

    sessions.end_all(account.id, except_=current.session_id)

    assert [sessions.find(each) is not None for each in (ended, kept, theirs)] == [False, True, True]


def test_the_sessions_of_an_account_are_listed_newest_first() -> None:
    account = make_account()
    first, second = signed(account), signed(account)
    ended = signed(account)
    sessions.end(ended.session_id)
    signed(make_account("bob@example.com"))

    listed = sessions.of(account.id)

    assert [each.id for each in listed] == [second.session_id, first.session_id]
    assert (listed[0].address, listed[0].user_agent) == (ADDRESS, "Firefox")
    with clock.moved_by(days=8):
        assert sessions.of(account.id) == []


def test_the_use_of_a_session_is_noted_once_a_minute() -> None:
    token = signed_in(make_account())
    began = one("SELECT seen_at FROM sessions")

    sessions.find(token)
    assert one("SELECT seen_at FROM sessions") == began
    with clock.moved_by(seconds=61):
        sessions.find(token)
    assert one("SELECT seen_at FROM sessions") > began


def test_finding_a_session_is_one_statement(shop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    account, _ = make_member(shop)
    token, statements = signed_in(account), []
    run = database.database.execute_sql

    def counting(sql: object, params: object = None) -> object:
        statements.append(sql)
        return run(sql, params)

    monkeypatch.setattr(database.database, "execute_sql", counting)
    assert sessions.find(token) is not None

    assert len(statements) == 1


def test_a_browser_cannot_store_much() -> None:
    account = make_account()

    sessions.begin(account.id, ADDRESS, "Mozilla\0" + "x" * 10_000)

    assert len(one("SELECT user_agent FROM sessions")) == 199


def test_an_account_keeps_its_newest_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "MOST_SESSIONS", 3)
    account, other = make_account(), make_account("bob@example.com")
    theirs = signed_in(other)

    tokens = [signed_in(account) for _ in range(5)]

    assert [sessions.find(token) is not None for token in tokens] == [False, False, True, True, True]
    assert sessions.find(theirs) is not None


def test_sessions_are_forgotten_when_they_have_expired() -> None:
    account = make_account()
    with clock.moved_by(days=-31):
        signed_in(account)
    kept = signed(account)

    assert (delete_old("old_sessions"), delete_old("old_sessions")) == (1, 0)

    assert all_of("SELECT id FROM sessions") == [kept.session_id]


def test_a_member_who_is_removed_has_no_access_from_then_on(shop: str) -> None:
    make_member(shop, "bob@example.com")
    account, member = make_member(shop, role="agent")
    token = signed_in(account)

    members.remove(shop, member.id, None)

    found = sessions.find(token)
    assert found is not None
    assert found.memberships == ()

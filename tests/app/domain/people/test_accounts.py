from __future__ import annotations

import threading

import pytest

from app.domain.people import accounts, links, sessions
from app.errors import Invalid, NotFound, Unavailable
from tests.cast import in_threads, one
from tests.people import PASSWORD, make_account, signed_in

pytestmark = pytest.mark.usefixtures("empty")


def test_an_account_is_found_by_its_address_in_any_case() -> None:
    account = make_account("Ada@Example.com")

    for email in ("ada@example.com", "ADA@EXAMPLE.COM", " ada@example.com "):
        found = accounts.find(email)
        assert found is not None
        assert found.id == account.id


@pytest.mark.parametrize("email", ["", " ", "bob@example.com", "x" * 300, "a\0da@example.com", "ada@example.com'--"])
def test_what_is_no_address_of_an_account_finds_none(email: str) -> None:
    make_account()

    assert accounts.find(email) is None
    assert accounts.verify(email, PASSWORD) is None


def test_an_address_has_one_account_however_often_it_is_made_at_once() -> None:
    found = in_threads([lambda: accounts.find_or_make("ada@example.com").id] * 4)

    assert len(set(found)) == one("SELECT count(*) FROM accounts") == 1


@pytest.mark.parametrize("email", ["", "ada", "ada@", "@example.com", "a da@example.com"])
def test_an_account_needs_an_address(email: str) -> None:
    with pytest.raises(Invalid) as refused:
        accounts.find_or_make(email)

    assert refused.value.faults[0].pointer == "/email"
    assert one("SELECT count(*) FROM accounts") == 0


def test_a_password_is_that_of_one_account() -> None:
    account = make_account()
    other = make_account("bob@example.com")
    accounts.set_password(other.id, "another password")

    verified = accounts.verify("ada@example.com", PASSWORD)

    assert verified is not None
    assert verified.id == account.id
    assert accounts.verify("ada@example.com", "another password") is None
    assert accounts.verify("bob@example.com", PASSWORD) is None


@pytest.mark.parametrize("password", ["", "Correct horse battery", PASSWORD + " ", PASSWORD[:-1], "x" * 100_000])
def test_a_wrong_password_is_nobodys(password: str) -> None:
    make_account()

    assert accounts.verify("ada@example.com", password) is None


@pytest.mark.parametrize("password", ["", PASSWORD])
def test_an_account_without_a_password_cannot_be_signed_in_to(password: str) -> None:
    make_account(has_password=False)

    assert accounts.verify("ada@example.com", password) is None


def test_an_unknown_address_costs_a_hash_too(monkeypatch: pytest.MonkeyPatch) -> None:
    make_account()
    make_account("new@example.com", has_password=False)
    accounts.verify("ada@example.com", "warms up the cache")
    checked: list[str] = []

    class Counting:
        def verify(self, stored: str, password: str) -> bool:
            checked.append(stored[:12])
            raise accounts.VerificationError

    monkeypatch.setattr(accounts, "_hasher", Counting())
    for email in ("ada@example.com", "new@example.com", "nobody@example.com", "\0", "x" * 300):
        accounts.verify(email, "wrong")

    assert checked == ["$argon2id$v="] * 5


@pytest.mark.parametrize("password", ["", "too short", "x" * 1001])
def test_a_password_has_a_length(password: str) -> None:
    account = make_account()

    with pytest.raises(Invalid) as refused:
        accounts.set_password(account.id, password)

    assert refused.value.faults[0].pointer == "/password"
    assert accounts.verify(account.email, PASSWORD) is not None


def test_the_longest_password_can_be_used() -> None:
    account = make_account()

    accounts.set_password(account.id, "ü" * 1000)

    assert accounts.verify(account.email, "ü" * 1000) is not None
    assert accounts.verify(account.email, "ü" * 1001) is None


def test_a_new_password_ends_all_sessions_and_voids_links_to_set_another() -> None:
    account, other = make_account(), make_account("bob@example.com")
    ended, kept = [signed_in(account), signed_in(account)], signed_in(other)
    token = links.reset(account).address.rpartition("/")[2]

    accounts.set_password(account.id, "another password")

    assert [sessions.find(each) for each in ended] == [None, None]
    assert sessions.find(kept) is not None
    with pytest.raises(NotFound):
        links.find(token)


def test_the_password_is_stored_as_a_hash_only() -> None:
    account = make_account()

    accounts.set_password(account.id, "another password")

    assert one("SELECT password_hash FROM accounts").startswith("$argon2id$")
    assert "another" not in one("SELECT accounts::text FROM accounts")


def test_few_passwords_are_checked_at_once_and_the_rest_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    make_account()
    accounts._nobodys_hash()
    working, most, go_on = [0], [0], threading.Event()
    lock = threading.Lock()

    class Slow:
        def verify(self, stored: str, password: str) -> bool:
            with lock:
                working[0] += 1
                most[0] = max(most[0], working[0])
            assert go_on.wait(20)
            with lock:
                working[0] -= 1
            return True

    monkeypatch.setattr(accounts, "_hasher", Slow())
    refused: list[Exception] = []

    def attempt() -> None:
        try:
            accounts.verify("ada@example.com", PASSWORD)
        except Unavailable as error:
            refused.append(error)
            if len(refused) == 4:
                go_on.set()

    in_threads([attempt] * 10)

    assert (len(refused), most[0]) == (4, 2)

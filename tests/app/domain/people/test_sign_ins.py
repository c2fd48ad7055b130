from __future__ import annotations

from collections.abc import Callable

import pytest

from app.domain.people import accounts, sessions, sign_ins
from app.domain.retention import delete_old
from app.errors import BellhopError, SignInRefused, SignInThrottled
from app.lib import clock
from tests.cast import all_of, everything_stored, in_threads, one
from tests.people import ADDRESS, PASSWORD, make_account

pytestmark = pytest.mark.usefixtures("empty")


def sign_in(email: str = "ada@example.com", password: str = PASSWORD, address: str = ADDRESS) -> str:
    return sign_ins.sign_in(email, password, address, "Firefox")


def outcome(attempt: Callable[[], object]) -> type[Exception] | None:
    try:
        attempt()
    except BellhopError as error:
        return type(error)
    return None


def fail(times: int, email: str = "ada@example.com", address: str = ADDRESS) -> list[type[Exception] | None]:
    return [outcome(lambda: sign_in(email, "wrong password", address)) for _ in range(times)]


@pytest.fixture
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Passwords are compared as they are, so that many can be tried soon."""
    accounts._nobodys_hash()  # a real one, for the tests after this

    class Cheap:
        def hash(self, password: str) -> str:
            return password

        def verify(self, stored: str, password: str) -> bool:
            if password != PASSWORD or stored == accounts._nobodys_hash():
                raise accounts.VerificationError
            return True

    monkeypatch.setattr(accounts, "_hasher", Cheap())


def test_who_knows_the_password_is_signed_in() -> None:
    account = make_account()

    found = sessions.find(sign_in(email=" ADA@example.com"))

    assert found is not None
    assert found.account_id == account.id
    assert all_of("SELECT failures FROM sign_in_failures ORDER BY 1") == [0, 0]


def test_all_refusals_are_the_same() -> None:
    make_account()
    make_account("new@example.com", has_password=False)

    said = set()
    for email in ("ada@example.com", "new@example.com", "nobody@example.com", "", "no address", "a\0b"):
        with pytest.raises(SignInRefused) as refused:
            sign_in(email, "wrong password")
        said.add(refused.value.detail)

    assert len(said) == 1
    assert one("SELECT count(*) FROM sessions") == 0


@pytest.mark.usefixtures("cheap")
@pytest.mark.parametrize("email", ["ada@example.com", "nobody@example.com"])
def test_who_guesses_is_stopped_after_a_few_attempts_whoever_it_is_about(email: str) -> None:
    make_account()

    assert fail(7, email) == [SignInRefused] * 5 + [SignInThrottled] * 2


@pytest.mark.usefixtures("cheap")
def test_the_right_password_does_not_help_who_is_stopped_until_the_time_is_over() -> None:
    make_account()
    fail(5)

    with pytest.raises(SignInThrottled) as throttled:
        sign_in()

    assert 0 < throttled.value.retry_after_seconds <= 900
    assert throttled.value.detail == "Too many attempts to sign in have failed. Try again in 15 minutes."
    with clock.moved_by(minutes=14):
        assert outcome(sign_in) is SignInThrottled
    with clock.moved_by(minutes=15, seconds=1):
        assert outcome(sign_in) is None


@pytest.mark.usefixtures("cheap")
def test_a_stranger_elsewhere_does_not_keep_the_owner_out() -> None:
    make_account()
    fail(10, address="198.51.100.1")

    assert outcome(sign_in) is None


@pytest.mark.usefixtures("cheap")
def test_many_strangers_do_not_keep_the_owner_out_where_they_have_signed_in_before() -> None:
    make_account()
    sign_in()
    attempts = [each for number in range(20) for each in fail(5, address=f"198.51.100.{number}")]

    assert (attempts.count(SignInRefused), attempts.count(SignInThrottled)) == (50, 50)
    assert outcome(sign_in) is None
    assert outcome(lambda: sign_in(address="192.0.2.1")) is SignInThrottled
    with clock.moved_by(hours=1, seconds=1):
        assert outcome(lambda: sign_in(address="192.0.2.1")) is None


@pytest.mark.usefixtures("cheap")
def test_one_address_cannot_try_many_accounts() -> None:
    make_account()
    attempts = [fail(1, f"person-{number}@example.com")[0] for number in range(60)]

    assert attempts == [SignInRefused] * 50 + [SignInThrottled] * 10
    assert outcome(sign_in) is SignInThrottled
    assert outcome(lambda: sign_in(address="198.51.100.1")) is None


@pytest.mark.usefixtures("cheap")
def test_the_addresses_of_one_ipv6_network_count_as_one() -> None:
    make_account()
    attempts = [fail(1, address=f"2001:db8:1:2::{number:x}")[0] for number in range(7)]

    assert attempts == [SignInRefused] * 5 + [SignInThrottled] * 2
    assert fail(1, address="2001:db8:1:3::1") == [SignInRefused]


@pytest.mark.usefixtures("cheap")
def test_those_who_are_stopped_count_no_further() -> None:
    make_account()
    fail(5)
    before = all_of("SELECT failures FROM sign_in_failures ORDER BY key")

    fail(20)

    assert all_of("SELECT failures FROM sign_in_failures ORDER BY key") == before


@pytest.mark.usefixtures("cheap")
def test_signing_in_forgives_earlier_mistakes_of_the_same_person() -> None:
    make_account()
    for _ in range(4):
        fail(4)
        sign_in()

    assert fail(6) == [SignInRefused] * 5 + [SignInThrottled]


@pytest.mark.usefixtures("cheap")
def test_attempts_at_one_moment_do_not_all_find_room_for_one_more(monkeypatch: pytest.MonkeyPatch) -> None:
    make_account()
    monkeypatch.setattr(sign_ins, "_standing", lambda limits: [])

    results = in_threads([lambda: sign_in(password="wrong password")] * 12)

    kinds = [type(each) for each in results]
    assert (kinds.count(SignInRefused), kinds.count(SignInThrottled)) == (5, 7)


def test_a_session_does_not_begin_with_a_password_that_was_changed_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    account = make_account()
    verify = accounts.verify

    def slow_verify(email: str, password: str) -> object:
        found = verify(email, password)
        accounts.set_password(account.id, "another password")
        return found

    monkeypatch.setattr(accounts, "verify", slow_verify)

    assert outcome(sign_in) is SignInRefused
    assert one("SELECT count(*) FROM sessions") == 0


@pytest.mark.usefixtures("cheap")
def test_counts_are_forgotten_when_they_no_longer_count() -> None:
    fail(2)
    assert delete_old("old_sign_in_failures") == 0

    with clock.moved_by(minutes=30):
        assert delete_old("old_sign_in_failures") == 2
    with clock.moved_by(minutes=61):
        assert delete_old("old_sign_in_failures") == 1

    assert one("SELECT count(*) FROM sign_in_failures") == 0


@pytest.mark.usefixtures("cheap")
def test_neither_address_nor_password_is_stored_for_an_attempt() -> None:
    fail(1, "somebody@example.com")

    stored = everything_stored()
    assert "somebody" not in stored
    assert "wrong password" not in stored

from __future__ import annotations

import pytest

from app.database import rows
from scheduler import leadership
from scheduler.leadership import Leadership
from tests.cast import in_threads, one

pytestmark = pytest.mark.usefixtures("empty")


@pytest.fixture(autouse=True)
def long_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    """No lease ends only because the machine is busy."""
    monkeypatch.setattr(leadership, "LEASE_SECONDS", 60.0)


def asked_again(leadership: Leadership) -> bool:
    """Whether it leads, when it is time to ask the database again."""
    leadership._asked = float("-inf")
    return leadership.is_held()


def let_lease_end() -> None:
    rows("UPDATE leases SET expires_at = now() - interval '1 second'")


def epoch() -> int:
    return int(one("SELECT epoch FROM leases"))


def test_the_first_to_ask_leads() -> None:
    first, second = Leadership(), Leadership()

    assert first.is_held() is True
    assert second.is_held() is False
    assert epoch() == 1


def test_a_leader_goes_on_leading_under_the_same_epoch() -> None:
    leader = Leadership()
    leader.is_held()
    rows("UPDATE leases SET expires_at = now() + interval '20 seconds'")

    assert asked_again(leader) is True
    assert epoch() == 1
    assert 20 < one("SELECT extract(epoch FROM expires_at - now()) FROM leases") <= 60


def test_another_takes_over_when_the_lease_has_ended() -> None:
    first, second = Leadership(), Leadership()
    first.is_held()
    second.is_held()
    let_lease_end()

    assert asked_again(second) is True
    assert epoch() == 2
    assert asked_again(first) is False


def test_another_leads_at_once_when_it_is_given_up() -> None:
    first, second = Leadership(), Leadership()
    first.is_held()
    assert second.is_held() is False

    first.give_up()

    assert asked_again(second) is True
    assert epoch() == 2


def test_only_a_leader_can_give_up() -> None:
    first, second = Leadership(), Leadership()
    first.is_held()
    second.is_held()

    second.give_up()

    assert asked_again(first) is True
    assert epoch() == 1


def test_a_leader_returns_after_it_lost_the_lease() -> None:
    first, second = Leadership(), Leadership()
    first.is_held()
    let_lease_end()
    asked_again(second)
    let_lease_end()

    assert asked_again(first) is True
    assert epoch() == 3


def test_of_many_who_ask_at_once_one_leads() -> None:
    answers = in_threads([Leadership().is_held for _ in range(8)])

    assert sorted(answers) == [False] * 7 + [True]

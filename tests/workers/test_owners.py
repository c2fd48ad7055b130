"""The owners that a dispatcher looks into, and their bells in Redis."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from app import bells
from app.bells import Bell
from app.domain.deliveries import lanes
from app.mailbox import Pause
from tests.cast import rung_on
from workers import owners as module
from workers.owners import Owners

QUEUE = lanes.FAST.queue


class Clock:
    """What the module takes for the time."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


@pytest.fixture
def owners(empty: None, clock: Clock) -> Iterator[Owners]:
    yield Owners(lanes.FAST)
    bells.flush(20)


def ring(owners: Owners, *names: str) -> None:
    """Their bells ring, and reach this process."""
    for name in names:
        bells.flags().set(Bell(QUEUE, name).flag, "1")
    owners.ring(names)
    owners.listen()


def is_ringing(name: str) -> bool:
    return bool(bells.flags().exists(Bell(QUEUE, name).flag))


def look_into(owners: Owners, *names: str, more: tuple[str, ...] = (), **pauses: Pause) -> None:
    owners.hear(names)
    owners.looked_into(names, more, pauses)


def test_who_was_rung_for_is_awake_until_it_has_been_looked_into(owners: Owners) -> None:
    ring(owners, "a", "b")

    look_into(owners, "a")

    assert list(owners.awake) == ["b"]
    assert (is_ringing("a"), is_ringing("b")) == (False, True)


def test_who_may_have_more_goes_behind_all_others(owners: Owners) -> None:
    ring(owners, "a", "b", "c")

    look_into(owners, "a", "b", more=("a",))

    assert list(owners.awake) == ["c", "a"]


def test_who_was_rung_for_while_it_was_looked_into_is_looked_into_again(owners: Owners) -> None:
    ring(owners, "a")
    owners.hear(["a"])
    owners.ring(["a"])

    owners.looked_into(["a"], [], {})
    owners.listen()

    assert list(owners.awake) == ["a"]


def test_who_may_have_more_later_wakes_then_or_when_its_bell_rings(owners: Owners, clock: Clock) -> None:
    ring(owners, "a", "b")
    look_into(owners, "a", "b", a=Pause(10), b=Pause(10))
    assert owners.rest_seconds() == 10

    ring(owners, "b")
    assert list(owners.awake) == ["b"]

    clock.now += 10
    owners.listen()
    assert list(owners.awake) == ["b", "a"]


def test_who_is_closed_sleeps_until_the_end_and_its_bell_stays_unheard(owners: Owners, clock: Clock) -> None:
    ring(owners, "a")
    look_into(owners, "a", more=("a",), a=Pause(10, is_closed=True))

    ring(owners, "a")
    owners.wake("a")
    owners.look_in("a", Pause(0))
    owners.look_in("a", Pause(5))
    owners.hear(owners.awake)

    assert (list(owners.awake), is_ringing("a"), owners.rest_seconds()) == ([], True, 10)
    clock.now += 10
    owners.listen()
    assert list(owners.awake) == ["a"]


def test_of_two_times_the_earlier_counts(owners: Owners) -> None:
    owners.look_in("a", Pause(10))
    owners.look_in("a", Pause(5))
    owners.look_in("a", Pause(20))

    assert owners.rest_seconds() == 5
    owners.look_in("a", Pause(0))
    assert list(owners.awake) == ["a"]


def test_who_leaves_is_not_looked_into_any_more(owners: Owners) -> None:
    ring(owners, "a", "b")

    owners.drop(["a", "unknown"])

    assert list(owners.awake) == ["b"]
    assert (is_ringing("a"), is_ringing("b")) == (False, True)


def test_who_was_rung_for_is_new_until_it_has_been_looked_into(owners: Owners) -> None:
    owners.wake("awake")
    ring(owners, "awake", "a", "b", "c", "d")
    assert list(owners.new) == ["awake", "a", "b", "c", "d"]

    look_into(owners, "awake", "a", "b", more=("a",), b=Pause(10, is_closed=True))
    owners.drop(["c"])
    ring(owners, "b")

    assert list(owners.new) == ["d"]
    ring(owners, "a")
    assert list(owners.new) == ["d", "a"]


def test_bells_are_held_back_while_more_are_new_than_may_be(empty: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HOLDING_BACK_SECONDS", 60)
    owners, events = Owners(lanes.FAST), []
    owners.ring(["a", "b", "c"])

    def look() -> None:
        owners.listen()
        events.append("looked into one")
        owners.looked_into(["a"], ["a"], {})

    looking = threading.Timer(0.05, look)
    looking.start()
    owners.hold_back(2)
    events.append("goes on")
    looking.join()

    assert events == ["looked into one", "goes on"]


def test_they_are_not_held_back_for_long(empty: None) -> None:
    owners = Owners(lanes.FAST)
    owners.ring(["a", "b", "c"])

    owners.hold_back(2)

    assert not owners.new


def test_in_the_end_all_are_rung_for_that_may_have_mail_now_or_later(owners: Owners) -> None:
    ring(owners, "empty", "awake", "later", "closed")
    look_into(owners, "empty", "later", "closed", later=Pause(10), closed=Pause(10, is_closed=True))
    owners.ring(["new"])

    owners.leave()

    assert rung_on(QUEUE) == ["awake", "closed", "later", "new"]

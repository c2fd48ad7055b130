from __future__ import annotations

import pytest

from workers import pacing
from workers.concurrency import Window, Windows


def play(window: Window, now: float, count: int, *, succeeded: bool = True, seconds: float = 0.01) -> None:
    """Begins so many requests at once, and ends them all after as many seconds."""
    for number in range(count):
        window.begin(str(number), now)
    for number in range(count):
        window.end(str(number), succeeded, seconds, now + seconds)


def full(window: Window, now: float, **how: object) -> None:
    play(window, now, window.room(now), **how)  # type: ignore[arg-type]


def grown(now: float = 0) -> Window:
    """One of the fast lane that has had three rounds of successes."""
    window = Window(tolerates_slow=False)
    for number in range(3):
        full(window, now + number)
    assert window.room(now + 3) == 8
    return window


def test_a_window_that_is_made_full_use_of_grows_with_quick_successes_up_to_a_limit() -> None:
    window = Window(tolerates_slow=False)
    sizes = []
    for number in range(12):
        sizes.append(window.room(number))
        full(window, number)

    assert sizes[:4] == [1, 2, 4, 8]
    assert sizes[-1] == pacing.MOST


def test_a_window_that_is_not_full_does_not_grow() -> None:
    window = grown()
    for number in range(10, 50):
        play(window, number, 7)

    assert window.room(50) == 8


def test_failures_shrink_it_to_one_once_for_each_round() -> None:
    window = grown()
    sizes = []
    for number in range(10, 15):
        full(window, number, succeeded=False)
        sizes.append(window.room(number + 1))

    assert sizes == [4, 2, 1, 1, 1]


def test_slow_answers_shrink_it_in_the_fast_lane() -> None:
    window = grown()
    full(window, 10, seconds=pacing.SLOW_SECONDS)

    assert window.room(20) == 4
    assert [window.turned_slow(20), window.turned_slow(20)] == [True, False]


def test_in_the_slow_lane_it_starts_with_one_and_grows_for_slow_successes_to_a_smaller_limit() -> None:
    window = Window(tolerates_slow=True)
    assert window.room(0) == 1
    for number in range(100):
        full(window, number * 10, seconds=3)

    assert window.room(2000) == pacing.MOST_WHILE_SLOW


@pytest.mark.parametrize(("tolerates_slow", "room"), [(False, 0), (True, 3)])
def test_while_an_answer_is_awaited_for_long_nothing_more_begins_in_the_fast_lane(
    tolerates_slow: bool, room: int
) -> None:
    window = Window(tolerates_slow=tolerates_slow)
    for number in range(2):
        full(window, number)
    window.begin("hanging", 10.0)

    assert window.room(10 + pacing.SLOW_SECONDS - 0.1) > 0
    assert window.room(10 + pacing.SLOW_SECONDS) == room


def test_an_answer_that_is_awaited_for_long_is_told_once() -> None:
    window = Window(tolerates_slow=False)
    window.begin("hanging", 10.0)

    assert not window.turned_slow(11)
    assert [window.turned_slow(10 + pacing.SLOW_SECONDS), window.turned_slow(15)] == [True, False]
    window.end("hanging", succeeded=False, seconds=10, now=20)
    assert window.turned_slow(20)


def test_ten_quick_successes_in_a_row_are_a_recovery_and_a_failure_is_none() -> None:
    window = Window(tolerates_slow=True)
    for number in range(pacing.RECOVERED_AFTER - 1):
        play(window, number, 1)
    assert not window.turned_quick()
    play(window, 20, 1, succeeded=False)
    play(window, 21, 1)
    assert not window.turned_quick()
    for number in range(pacing.RECOVERED_AFTER):
        play(window, 30 + number, 1)

    assert [window.turned_quick(), window.turned_quick()] == [True, False]


# All of a process


def test_endpoints_that_are_not_sure_to_answer_get_half_of_the_room_at_most() -> None:
    every = Windows(tolerates_slow=False)
    unsure = [f"unsure-{number}" for number in range(100)]

    rooms = every.rooms(unsure, capacity=100)

    assert sum(rooms.values()) == 50
    for endpoint_id, room in rooms.items():
        for number in range(room):
            every.begin(endpoint_id, str(number))
    assert every.rooms(unsure, capacity=100) == {}

    every.begin("good", "first")
    every.end("good", "first", succeeded=True, seconds=0.01)
    assert every.rooms([*unsure, "good"], capacity=100) == {"good": 2}


def test_what_is_new_gets_one_request_each_of_half_of_the_room() -> None:
    every = Windows(tolerates_slow=True)
    endpoint_ids = [f"old-{number}" for number in range(10)] + ["new", "newer", "newest"]
    for endpoint_id in endpoint_ids:
        for number in range(9):
            every.begin(endpoint_id, str(number))
            every.end(endpoint_id, str(number), succeeded=True, seconds=0.01)

    rooms = every.rooms(endpoint_ids, 4, dict.fromkeys(["new", "newer", "newest"]))

    assert rooms == {"new": 1, "newer": 1, "old-0": 2}
    assert every.rooms(["newest"], 5, dict.fromkeys(["newest"])) == every.rooms(["newest"], 5)


def test_requests_that_wait_take_no_room_but_there_is_a_limit_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pacing, "MOST_UNDER_WAY", 80)
    every = Windows(tolerates_slow=False)
    hanging = [f"hanging-{number}" for number in range(50)]
    for endpoint_id in hanging[:25]:
        every.begin(endpoint_id, "first")
    assert sum(every.rooms(hanging, capacity=50).values()) == 0

    monkeypatch.setattr(pacing, "SLOW_SECONDS", 0.0)
    assert sum(every.rooms(hanging, capacity=50).values()) == 15  # half of 80 are for those that answer
    assert sum(every.rooms(hanging, capacity=20).values()) == 10


def test_an_endpoint_alone_may_have_more_under_way_than_one_among_others() -> None:
    every = Windows(tolerates_slow=False)
    for _ in range(10):
        requests = range(every.rooms(["it"], capacity=1000)["it"])
        for number in requests:
            every.begin("it", number)
        for number in requests:
            every.end("it", number, succeeded=True, seconds=0.01)

    assert every.rooms(["it"], capacity=1000) == {"it": pacing.MOST}
    for name in ("second", "third", "fourth", "fifth"):
        every.begin(name, "first")
    assert every.rooms(["it"], capacity=1000) == {"it": pacing.MOST // 4}


def test_there_is_never_more_room_than_is_left_for_all() -> None:
    every = Windows(tolerates_slow=False)
    good = [f"good-{number}" for number in range(100)]
    for endpoint_id in good:
        every.begin(endpoint_id, "first")
        every.end(endpoint_id, "first", succeeded=True, seconds=0.01)

    assert sum(every.rooms(good, capacity=100).values()) == 100


def test_in_the_slow_lane_quick_answers_let_it_grow_on() -> None:
    window = Window(tolerates_slow=True)
    for number in range(12):
        full(window, number)

    assert window.room(12) == pacing.MOST // 4


def test_slow_endpoints_are_judged_once_for_each_slow_answer() -> None:
    every = Windows(tolerates_slow=False)
    every.begin("slow", "first")
    every.end("slow", "first", succeeded=True, seconds=pacing.SLOW_SECONDS)

    assert [every.judge(), every.judge()] == [({"slow"}, set()), (set(), set())]


OLD = pacing.BACKLOG_SECONDS + 1


def test_an_endpoint_has_a_backlog_while_its_mail_is_old_and_that_of_another_fresh() -> None:
    every = Windows(tolerates_slow=False)
    every.begin("old", "first", waited=OLD)
    assert every.backlogs() == set()

    every.begin("fresh", "first", waited=0.1)
    assert every.backlogs() == {"old"}

    every.begin("old", "second", waited=0.1)
    assert every.backlogs() == set()


def test_a_burst_that_turns_into_a_backlog_is_not_beside_others() -> None:
    every = Windows(tolerates_slow=False)
    every.begin("alone", "first", waited=pacing.BACKLOG_SECONDS * 0.9)
    every.begin("alone", "second", waited=pacing.BACKLOG_SECONDS * 1.1)

    assert every.backlogs() == set()


def test_where_all_mail_is_old_nobody_has_a_backlog_beside_others() -> None:
    every = Windows(tolerates_slow=False)
    for name in ("one", "another"):
        every.begin(name, "first", waited=OLD)

    assert every.backlogs() == set()


def test_in_the_slow_lane_a_backlog_stays_until_its_mail_is_fresh() -> None:
    every = Windows(tolerates_slow=True)

    def play(waited: float) -> None:
        for number in range(pacing.RECOVERED_AFTER):
            every.begin("it", number, waited=waited)
            every.end("it", number, succeeded=True, seconds=0.01)

    every.begin("other", "first", waited=0.1)
    play(OLD)
    assert (every.judge(), every.backlogs()) == ((set(), set()), set())

    play(0.1)
    assert every.judge() == (set(), {"it"})


def test_no_more_endpoints_are_remembered_than_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pacing, "MOST_UNDER_WAY", 10)
    every = Windows(tolerates_slow=False)
    every.begin("busy", "first")
    every.rooms([f"idle-{number}" for number in range(100)], capacity=1000)

    every.judge()

    assert len(every._windows) == 1

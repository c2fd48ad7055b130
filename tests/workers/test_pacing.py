from __future__ import annotations

import time

import pytest

from workers import pacing
from workers.pacing import Faults, Pace


def test_the_capacity_grows_while_more_is_wanted_and_the_loop_keeps_up() -> None:
    pace = Pace()
    pace.keep(time.monotonic(), is_short=False)
    assert pace.capacity == pacing.LEAST_CAPACITY

    for _ in range(1000):
        pace.keep(time.monotonic() + 60, is_short=True)

    assert pace.capacity == pacing.MOST_UNDER_WAY
    assert not pace.can_grow


def test_the_capacity_shrinks_while_requests_wait_for_the_loop() -> None:
    pace = Pace()
    pace.capacity = pacing.MOST_UNDER_WAY

    pace.keep(time.monotonic() - 60, is_short=True)
    assert pace.capacity < pacing.MOST_UNDER_WAY
    for _ in range(20):
        pace.keep(time.monotonic() - 60, is_short=True)

    assert pace.capacity == pacing.LEAST_CAPACITY
    assert pace.is_behind


def test_a_process_that_keeps_up_is_not_behind() -> None:
    pace = Pace()

    pace.keep(time.monotonic() + 60, is_short=False)

    assert not pace.is_behind


# Pauses after faults of ours


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time that the faults see: its last item."""
    times = [1000.0]
    monkeypatch.setattr("time.monotonic", lambda: times[-1])
    return times


def test_pauses_double_while_faults_go_on_up_to_half_a_minute(clock: list[float]) -> None:
    faults, pauses = Faults(), []
    for _ in range(9):
        pauses.append(faults.pause())
        clock.append(clock[-1] + pauses[-1])

    assert pauses == [0.5, 0.5, 1, 2, 4, 8, 16, 30, 30]


def test_a_fault_long_after_the_others_begins_anew(clock: list[float]) -> None:
    faults = Faults()
    faults.pause()
    clock.append(clock[-1] + 20)
    assert faults.pause() == 20

    clock.append(clock[-1] + 61)

    assert faults.pause() == 0.5

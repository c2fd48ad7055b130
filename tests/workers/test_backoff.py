from __future__ import annotations

import pytest

from workers.backoff import Faults


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

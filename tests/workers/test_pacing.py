from __future__ import annotations

import time

from workers import pacing
from workers.pacing import Pace


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

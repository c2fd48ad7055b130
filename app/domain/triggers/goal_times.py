"""Goal times: histograms of the time that runs took to reach their goal, and the arms they took."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

# The ratio between the longest and the shortest time of a class.
RATIO = 1.25
AFTER, IN_ARM = "goal_after:", "goal_arm:"
_LAST = 80
MOST_ARMS = 20  # the most arms that are counted for one run
_NAME = re.compile("[A-Za-z0-9_-]{1,64}")


def class_of(taken: timedelta) -> int:
    """Returns the class of a duration. Class 0 is up to one second; the last class is open-ended."""
    seconds = taken.total_seconds()
    return 0 if seconds <= 1 else min(math.ceil(math.log(seconds, RATIO) - 1e-9), _LAST)


def longest_seconds(number: int) -> float:
    """Returns the upper bound of a class, in seconds."""
    return float(RATIO**number)


def counted(saved: Mapping[str, Any], begun: datetime, reached: datetime) -> Iterator[tuple[str, str]]:
    """Yields what to count for a run that reaches its goal, as (step, key).

    Step '' stands for the run itself. `saved`: what the run's steps have saved. A split saves the name of the arm and
    nothing else.
    """
    yield "", f"{AFTER}{class_of(reached - begun)}"
    arms = [
        (step, kept["arm"])
        for step, kept in saved.items()
        if isinstance(kept, dict) and kept.keys() == {"arm"} and isinstance(kept["arm"], str)
    ]
    for step, arm in arms[:MOST_ARMS]:
        if _NAME.fullmatch(step) and _NAME.fullmatch(arm):
            yield step, f"{IN_ARM}{arm}"


def quantile(by_class: Mapping[int, int], share: float) -> float | None:
    """Returns the time in seconds within which `share` of the runs reached the goal.

    None if no run reached it. The time may be up to a quarter too long, because it is the upper bound of a class.
    """
    wanted, reached = share * sum(by_class.values()), 0
    for number in sorted(by_class):
        reached += by_class[number]
        if reached >= wanted and by_class[number]:
            return longest_seconds(number)
    return None

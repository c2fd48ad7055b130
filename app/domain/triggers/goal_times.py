"""Goal times: how long runs took to their goal, counted in classes, and in which arms of splits they were."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

# How many times longer the longest time of a class is than its shortest.
RATIO = 1.25
AFTER, IN_ARM = "goal_after:", "goal_arm:"
_LAST = 80
MOST_ARMS = 20  # of a run, that are counted
_NAME = re.compile("[A-Za-z0-9_-]{1,64}")


def class_of(taken: timedelta) -> int:
    """The class of a time, from 0 for a second at most."""
    seconds = taken.total_seconds()
    return 0 if seconds <= 1 else min(math.ceil(math.log(seconds, RATIO) - 1e-9), _LAST)


def longest_seconds(number: int) -> float:
    """The longest time of the class, in seconds."""
    return float(RATIO**number)


def counted(saved: Mapping[str, Any], begun: datetime, reached: datetime) -> Iterator[tuple[str, str]]:
    """What is counted of a run that reaches its goal: the step, '' for the run, and the key.

    `saved`: what the steps of the run have kept; a split keeps the name of the arm, and nothing else.
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
    """The time, in seconds, within which that share of the runs reached their goal; None if none did.

    It is too long by a quarter at most.
    """
    wanted, reached = share * sum(by_class.values()), 0
    for number in sorted(by_class):
        reached += by_class[number]
        if reached >= wanted and by_class[number]:
            return longest_seconds(number)
    return None

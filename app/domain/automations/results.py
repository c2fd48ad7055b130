"""Results of automations: conversion by version and by arm, and where runs leave.

Reads only counts, so the cost does not depend on the number of runs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import NormalDist
from typing import Any

from app.database import replica, rows
from app.models.automations import Automation
from app.models.runs import STATUSES

MOST_VERSIONS = 10
CONFIDENCE = 0.95
FEWEST_RUNS, FEWEST_GOALS = 30, 5


@dataclass(frozen=True, slots=True)
class Arm:
    """An arm of a split, or a version: its name, and how many of its runs reached the goal."""

    name: str
    goals: Proportion


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether shares differ. `kind`: `different`, `open` (unclear), or `too_few` (not enough runs).

    `better`, `worse`: the clearest pair. `low`, `high`: the interval of the first share minus the second, from -1 to 1;
    `low` is above 0 only for `different`. All four are unset for `too_few`.
    """

    kind: str
    better: str = ""
    worse: str = ""
    low: float = 0
    high: float = 0


@dataclass(frozen=True, slots=True)
class Leaving:
    """Where runs leave a version: how many entered a step, failed in it, or went no further.

    `late`: how many continued with the step's `otherwise`, such as after a timeout; None if it has none. `gone`: how
    many were cancelled in it, also by an exit.
    """

    step: str
    entered: int
    failed: int
    gone: int
    late: int | None


@replica.may_read
def by_version(automation: Automation) -> list[Arm]:
    """Returns the latest MOST_VERSIONS versions, newest first. All their runs are counted."""
    latest = automation.latest_version
    numbers = list(range(latest, max(latest - MOST_VERSIONS, 0), -1))
    values = {"id": automation.id, "versions": numbers, "keys": [*STATUSES, "goals"]}
    counted = {(version, key): amount for version, key, amount in rows(_BY_VERSION, values)} if numbers else {}
    return [
        Arm(
            str(number),
            Proportion(counted.get((number, "goals"), 0), sum(counted.get((number, status), 0) for status in STATUSES)),
        )
        for number in numbers
    ]


def arms_of(counted: Mapping[str, Any]) -> dict[str, list[Arm]]:
    """Returns the arms of each split by step. `counted`: a version's counts, as in the API."""
    return {
        step: [
            Arm(name, Proportion(min(passed["arm_goals"][name], taken), taken))
            for name, taken in passed["arms"].items()
        ]
        for step, passed in counted["steps"].items()
        if "arm_goals" in passed
    }


def compare(arms: Sequence[Arm]) -> Verdict:
    """Returns whether any two arms differ, with Bonferroni's correction for several pairs.

    Arms without runs are left out. The verdict is `too_few` if fewer than two arms remain, if one of them has fewer
    than FEWEST_RUNS, or if fewer than FEWEST_GOALS runs in all have reached the goal, or have missed it.
    """
    compared = [arm for arm in arms if arm.goals.whole]
    if len(compared) < 2 or not _has_enough(*(arm.goals for arm in compared)):
        return Verdict("too_few")
    pairs = list(combinations(sorted(compared, key=lambda arm: -arm.goals.share), 2))
    confidence = 1 - (1 - CONFIDENCE) / len(pairs)
    found = [(difference(one.goals, other.goals, confidence), one.name, other.name) for one, other in pairs]
    (low, high), better, worse = max(found)
    return Verdict("different" if low > 0 else "open", better, worse, low, high)


def leavings(counted: Mapping[str, Any]) -> list[Leaving]:
    """Returns where runs leave, step by step. `counted`: a version's counts, as in the API."""
    return [
        Leaving(
            step,
            passed["entered"],
            passed["failed"],
            max(passed["entered"] - passed["left"] - passed["waiting"] - passed["failed"], 0),
            passed.get("arms", {}).get("otherwise"),
        )
        for step, passed in counted["steps"].items()
    ]


@dataclass(frozen=True, slots=True)
class Proportion:
    """A part of a whole, such as runs that reached the goal out of all runs."""

    part: int
    whole: int

    @property
    def share(self) -> float:
        """The share, from 0 to 1; 0 if the whole is 0."""
        return self.part / self.whole if self.whole else 0.0

    def interval(self, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """Returns Wilson's interval for the true share (Wilson, 1927); (0, 1) if nothing was counted."""
        if not self.whole:
            return 0.0, 1.0
        z, n, p = NormalDist().inv_cdf((1 + confidence) / 2), self.whole, min(self.share, 1.0)
        middle = p + z * z / (2 * n)
        half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
        return max(0.0, (middle - half) / (1 + z * z / n)), min(1.0, (middle + half) / (1 + z * z / n))


def difference(one: Proportion, other: Proportion, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Returns the interval of the difference between two shares (Newcombe, 1998, method 10)."""
    (low, high), (other_low, other_high) = one.interval(confidence), other.interval(confidence)
    p, q = min(one.share, 1.0), min(other.share, 1.0)
    below = math.hypot(p - low, other_high - q)
    return p - q - below, p - q + math.hypot(high - p, q - other_low)


def _has_enough(*compared: Proportion) -> bool:
    goals = sum(each.part for each in compared)
    misses = sum(each.whole - each.part for each in compared)
    return all(each.whole >= FEWEST_RUNS for each in compared) and min(goals, misses) >= FEWEST_GOALS


_BY_VERSION = """
    SELECT version, key, sum(amount)::bigint FROM (
        SELECT version, key, amount FROM run_counts
        WHERE automation_id = %(id)s AND version = ANY(%(versions)s)
            AND grain = 'all' AND starts_at = timestamptz 'epoch' AND step = '' AND key = ANY(%(keys)s)
        UNION ALL
        SELECT version, key, amount FROM automation_deltas
        WHERE automation_id = %(id)s AND version = ANY(%(versions)s) AND step = '' AND key = ANY(%(keys)s)) AS counted
    GROUP BY version, key
"""

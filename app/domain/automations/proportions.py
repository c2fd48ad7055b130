"""Proportions: confidence intervals of shares and of their differences."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

FEWEST_RUNS, FEWEST_GOALS = 30, 5


@dataclass(frozen=True, slots=True)
class Proportion:
    """A part of a whole, such as runs that reached the goal out of all runs."""

    part: int
    whole: int

    @property
    def share(self) -> float:
        """The share, from 0 to 1; 0 if the whole is 0."""
        return self.part / self.whole if self.whole else 0.0

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Returns Wilson's interval for the true share (Wilson, 1927); (0, 1) if nothing was counted."""
        if not self.whole:
            return 0.0, 1.0
        z, n, p = z_of(confidence), self.whole, min(self.share, 1.0)
        middle = p + z * z / (2 * n)
        half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
        return max(0.0, (middle - half) / (1 + z * z / n)), min(1.0, (middle + half) / (1 + z * z / n))


def z_of(confidence: float) -> float:
    """Returns how many standard deviations an interval of that confidence extends to each side."""
    return NormalDist().inv_cdf((1 + confidence) / 2)


def difference(one: Proportion, other: Proportion, confidence: float = 0.95) -> tuple[float, float]:
    """Returns the interval of the difference between two shares (Newcombe, 1998, method 10)."""
    (low, high), (other_low, other_high) = one.interval(confidence), other.interval(confidence)
    p, q = min(one.share, 1.0), min(other.share, 1.0)
    below = math.hypot(p - low, other_high - q)
    return p - q - below, p - q + math.hypot(high - p, q - other_low)


def has_enough(*compared: Proportion) -> bool:
    """Whether there are enough runs, and enough goals in total, for a comparison."""
    goals = sum(each.part for each in compared)
    misses = sum(each.whole - each.part for each in compared)
    return all(each.whole >= FEWEST_RUNS for each in compared) and min(goals, misses) >= FEWEST_GOALS

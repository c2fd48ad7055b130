"""Histograms of durations: how many fell into each bucket. Adding up the buckets merges them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import timedelta

# Each bucket ends at 1.1 times its beginning, so what is said of it is at most 4.8 % off. The first ends at a second.
_RATIO = 1.1
# Nothing that is measured lasts longer than ten years.
LAST = math.ceil(math.log(10 * 366 * 86_400, _RATIO))


def bucket_of(duration: timedelta) -> int:
    """The bucket of that duration; a negative one counts as none."""
    seconds = duration.total_seconds()
    return min(math.floor(math.log(seconds, _RATIO)) + 1, LAST) if seconds >= 1 else 0


def quantile(histogram: Mapping[int, int], share: float) -> float | None:
    """The seconds that this share of the durations did not exceed, within 5 %, or half a second; None: there are none.

    It is the smallest duration that has at least this share at or below it.
    """
    wanted, below = math.ceil(share * sum(histogram.values())), 0
    for bucket in sorted(histogram):
        below += histogram[bucket]
        if histogram[bucket] and below >= wanted:
            return _middle(bucket)
    return None


def _middle(bucket: int) -> float:
    """The seconds that are as far from both ends of the bucket, relative to these."""
    end: float = _RATIO**bucket
    return 2 * end / (1 + _RATIO) if bucket else 0.5

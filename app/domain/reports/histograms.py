"""Histograms of durations: the number in each bucket. Histograms are merged by adding buckets."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import timedelta

# Each bucket ends at 1.1 times its beginning, so a result is at most 4.8 % off. The first bucket ends at one second.
_RATIO = 1.1
# The bucket of ten years. Nothing that is measured takes longer.
LAST = math.ceil(math.log(10 * 366 * 86_400, _RATIO))


def bucket_of(duration: timedelta) -> int:
    """Returns the bucket of the duration. A negative one counts as zero."""
    seconds = duration.total_seconds()
    return min(math.floor(math.log(seconds, _RATIO)) + 1, LAST) if seconds >= 1 else 0


def quantile(histogram: Mapping[int, int], share: float) -> float | None:
    """Returns the seconds that `share` of the durations did not exceed; None if there are none.

    This is the smallest duration with at least this share at or below it, within 5 % or half a second.
    """
    wanted, below = math.ceil(share * sum(histogram.values())), 0
    for bucket in sorted(histogram):
        below += histogram[bucket]
        if histogram[bucket] and below >= wanted:
            return _middle(bucket)
    return None


def _middle(bucket: int) -> float:
    """Returns the point with the same relative distance to both ends of the bucket, in seconds."""
    end: float = _RATIO**bucket
    return 2 * end / (1 + _RATIO) if bucket else 0.5

"""Equal parts: what is due is done for all owners in parts of the same size, so that one with much delays none."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

# What one transaction does, and the owners that it does it for.
PART, MOST_TOGETHER = 200, 20
# For how long one call goes on while there is more to do.
SLICE_SECONDS = 0.25


def serve(owners: Iterable[str], do: Callable[[Sequence[str], int], Counter[str]]) -> int:
    """Does what is due for these owners until none is left or the slice is over; returns how much was done.

    `do` does up to that many for each of some owners, and returns how many it has done of each.
    """
    ends, done, waiting = time.monotonic() + SLICE_SECONDS, 0, list(owners)
    random.shuffle(waiting)
    while waiting:
        together, waiting = waiting[:MOST_TOGETHER], waiting[MOST_TOGETHER:]
        each = PART // len(together)
        done_of = do(together, each)
        # One that had all of its part done may have more.
        waiting += [owner for owner in together if done_of[owner] == each]
        done += done_of.total()
        if time.monotonic() > ends:
            break
    return done

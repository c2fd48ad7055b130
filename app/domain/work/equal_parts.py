"""Equal parts: does due work in equal parts for all owners, so that a large one delays no other."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

# How much one transaction does, and for how many owners at most.
PART, MOST_TOGETHER = 200, 20
# How long one call goes on if more is due.
SLICE_SECONDS = 0.25


def serve(owners: Iterable[str], do: Callable[[Sequence[str], int], Counter[str]]) -> int:
    """Does what is due for the owners, until none is left or the slice is over.

    `do(owners, each)` handles up to `each` rows of each owner, and returns how many of each it handled. Returns the
    total.
    """
    ends, done, waiting = time.monotonic() + SLICE_SECONDS, 0, list(owners)
    random.shuffle(waiting)
    while waiting:
        together, waiting = waiting[:MOST_TOGETHER], waiting[MOST_TOGETHER:]
        each = PART // len(together)
        done_of = do(together, each)
        # An owner whose part was used up may have more.
        waiting += [owner for owner in together if done_of[owner] == each]
        done += done_of.total()
        if time.monotonic() > ends:
            break
    return done

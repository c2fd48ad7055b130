"""Does due work in equal parts for all owners, so that an owner with much work delays no other."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

# The most rows that one transaction handles, and the most owners.
PART, MOST_TOGETHER = 200, 20
# How long one call continues if more rows are due.
SLICE_SECONDS = 0.25


def serve(owners: Iterable[str], do: Callable[[Sequence[str], int], Counter[str]]) -> int:
    """Calls `do` for the owners in turn, until no due work is left or the slice is over.

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

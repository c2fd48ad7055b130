"""Paces: how much may be done now, under a limit per second."""

from __future__ import annotations

from datetime import datetime

from app.database import rows

# A paced sender may catch up this much, so that waking a little late costs nothing.
CATCH_UP_SECONDS = 0.5


def allowed(per_second: int | None, paced_until: datetime | None, most: int) -> int:
    """Returns how many actions are allowed now, up to `most`. `per_second`: None for no limit.

    `paced_until`: when the next action is allowed; None if there was none yet.
    """
    if per_second is None:
        return most
    if paced_until is None:
        return 1
    due = "SELECT floor(least(extract(epoch FROM now() - %s), %s) * %s)::int + 1"
    [(number,)] = rows(due, (paced_until, CATCH_UP_SECONDS, per_second))
    return min(max(int(number), 0), most)

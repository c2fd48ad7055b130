"""`Retry-After`: when another server accepts the next request (RFC 9110, section 10.2.3)."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

MOST_SECONDS = 3600.0
_SECONDS = re.compile(r"\d{1,9}", re.ASCII)


def seconds(value: str, at: datetime) -> float:
    """Returns the seconds to wait from `at` on, up to MOST_SECONDS; 0 if `value` is unreadable."""
    value = value.strip()
    if _SECONDS.fullmatch(value):
        return min(float(value), MOST_SECONDS)
    try:
        until = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return 0.0
    # A date without a zone means GMT.
    waiting = (until if until.tzinfo else until.replace(tzinfo=UTC)) - at
    return min(max(waiting.total_seconds(), 0.0), MOST_SECONDS)

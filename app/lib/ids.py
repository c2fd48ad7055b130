"""TypeIDs: a prefix, `_`, and 26 characters of base32 over a UUIDv7, so that they sort by the time they were made."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from typeid.base32 import encode
from uuid_utils import uuid7

_SUFFIX = re.compile(r"[0-7][0-9a-hjkmnp-tv-z]{25}")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST, _LAST = datetime(2000, 1, 1, tzinfo=UTC), datetime(3000, 1, 1, tzinfo=UTC)

# How far the clocks of two machines, one of which makes the identifier, are taken to be apart at most.
MOST_SKEW = timedelta(hours=1)


def new(prefix: str) -> str:
    return f"{prefix}_{encode(uuid7().bytes)}"


def bound(prefix: str, at: datetime) -> str:
    """The least that an identifier of that prefix made in the millisecond of `at`, or later, can be."""
    milliseconds = (at - _EPOCH) // timedelta(milliseconds=1)
    return f"{prefix}_{encode(milliseconds.to_bytes(6, 'big') + bytes(10))}"


def around(prefix: str, at: datetime, side: int) -> str:
    """A bound that what was made before (side -1) or after (1) `at`, by whatever machine's clock, keeps to."""
    return bound(prefix, min(max(at, _FIRST), _LAST) + side * MOST_SKEW)


def is_id(text: str, prefix: str) -> bool:
    """Whether `text` is a well-formed identifier of that prefix (TypeID specification 0.3)."""
    head, _, suffix = text.rpartition("_")
    return head == prefix and _SUFFIX.fullmatch(suffix) is not None

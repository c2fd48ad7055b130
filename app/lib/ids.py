"""TypeIDs: a prefix, `_`, and a UUIDv7 as 26 characters of base32. They sort by creation time."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from typeid.base32 import decode, encode
from uuid_utils import uuid7

_SUFFIX = re.compile(r"[0-7][0-9a-hjkmnp-tv-z]{25}")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST, _LAST = datetime(2000, 1, 1, tzinfo=UTC), datetime(3000, 1, 1, tzinfo=UTC)

# The largest assumed difference between the clocks of two machines that create identifiers.
MOST_SKEW = timedelta(hours=1)


def new(prefix: str) -> str:
    """Returns a new identifier. Later ones of the same machine sort higher."""
    return f"{prefix}_{encode(uuid7().bytes)}"


def bound(prefix: str, at: datetime) -> str:
    """Returns the lowest identifier that can be created at `at` (to the millisecond) or later."""
    milliseconds = (at - _EPOCH) // timedelta(milliseconds=1)
    return f"{prefix}_{encode(milliseconds.to_bytes(6, 'big') + bytes(10))}"


def around(prefix: str, at: datetime, side: int) -> str:
    """Like `bound`, but allows for clocks of other machines that are wrong by up to MOST_SKEW.

    `side` -1: no identifier created since `at` is lower. `side` 1: every identifier created before `at` is lower.
    """
    return bound(prefix, min(max(at, _FIRST), _LAST) + side * MOST_SKEW)


def time_of(identifier: str) -> datetime:
    """Returns when a well-formed identifier was created, to the millisecond."""
    return _EPOCH + timedelta(milliseconds=int.from_bytes(decode(identifier.rpartition("_")[2])[:6], "big"))


def is_id(text: str, prefix: str) -> bool:
    """Whether `text` is a well-formed identifier of that prefix (TypeID specification 0.3)."""
    head, _, suffix = text.rpartition("_")
    return head == prefix and _SUFFIX.fullmatch(suffix) is not None

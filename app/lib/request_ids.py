"""Request identifiers: a caller's own if it is acceptable, else a new one."""

from __future__ import annotations

import re

from uuid_utils import uuid7

_is_acceptable = re.compile(r"[A-Za-z0-9._-]{1,128}").fullmatch


def kept_or_new(proposed: str | None, trace_id: str | None = None) -> str:
    """Returns the caller's identifier if acceptable, else `trace_id`, else a new one of 32 digits."""
    if proposed and _is_acceptable(proposed):
        return proposed
    if trace_id is not None:
        return trace_id
    return uuid7().hex  # later identifiers sort higher, so an index on them grows at its end

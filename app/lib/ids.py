"""TypeIDs: a prefix, `_`, and 26 characters of base32 over a UUIDv7, so that they sort by the time they were made."""

from __future__ import annotations

import re

from typeid import TypeID

_SUFFIX = re.compile(r"[0-7][0-9a-hjkmnp-tv-z]{25}")


def new(prefix: str) -> str:
    return str(TypeID(prefix))


def is_id(text: str, prefix: str) -> bool:
    """Whether `text` is a well-formed identifier of that prefix (TypeID specification 0.3)."""
    head, _, suffix = text.rpartition("_")
    return head == prefix and _SUFFIX.fullmatch(suffix) is not None

"""Opaque, signed cursors for lists: the sort values of the last row, bound to its list."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Sequence


def seal(key: bytes, scope: str, last: Sequence[str]) -> str:
    """Returns a cursor to continue the list `scope` after these values, which have no line breaks."""
    place = "\n".join(last)
    mac = hmac.digest(key, f"cursor\n{len(scope)}\n{scope}\n{place}".encode(), hashlib.sha256)[:16]
    return base64.urlsafe_b64encode(mac + place.encode()).decode().rstrip("=")


def unseal(key: bytes, scope: str, cursor: str) -> list[str]:
    """Returns the values in the cursor. Raises ValueError if it is forged or of another list."""
    if not cursor.isascii():
        raise ValueError("not a cursor")
    raw = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
    last = raw[16:].decode().split("\n")
    if not hmac.compare_digest(seal(key, scope, last), cursor):
        raise ValueError("not a cursor of this list")
    return last

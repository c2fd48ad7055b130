"""Opaque, signed cursors for lists: the identifier of the last row shown, bound to the list it came from."""

from __future__ import annotations

import base64
import hashlib
import hmac


def seal(key: bytes, scope: str, last_id: str) -> str:
    """A cursor that continues the list named by `scope` after `last_id`."""
    return base64.urlsafe_b64encode(_mac(key, scope, last_id) + last_id.encode()).decode().rstrip("=")


def unseal(key: bytes, scope: str, cursor: str) -> str:
    """The identifier in the cursor. Raises ValueError if it is broken, forged or of another list."""
    if not cursor.isascii():
        raise ValueError("not a cursor")
    raw = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
    last_id = raw[16:].decode()
    if not hmac.compare_digest(seal(key, scope, last_id), cursor):
        raise ValueError("not a cursor of this list")
    return last_id


def _mac(key: bytes, scope: str, last_id: str) -> bytes:
    return hmac.digest(key, f"cursor\n{scope}\n{last_id}".encode(), hashlib.sha256)[:16]

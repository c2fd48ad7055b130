"""Keys for one purpose each, derived from a secret."""

from __future__ import annotations

import hashlib
import hmac


def derived(secret: bytes, purpose: str) -> bytes:
    """The key for that purpose: 32 bytes that tell nothing about the secret or about other keys."""
    return hmac.digest(secret, f"bellhop\n{purpose}".encode(), hashlib.sha256)

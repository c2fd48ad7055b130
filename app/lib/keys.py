"""Derives a separate key for each purpose from a secret."""

from __future__ import annotations

import hashlib
import hmac


def derived(secret: bytes, purpose: str) -> bytes:
    """Returns the key for a purpose: 32 bytes that reveal nothing about the secret or other keys."""
    return hmac.digest(secret, f"bellhop\n{purpose}".encode(), hashlib.sha256)

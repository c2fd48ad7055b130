"""Verifies the signature of a Bellhop webhook. Copy this file: it needs Python 3.8 or later and nothing else."""

import hashlib
import hmac
import time


def is_genuine(secret: str, header: str, body: bytes, tolerance_seconds: int = 300) -> bool:
    """Whether X-Service-Signature signs the raw body with this secret, and is recent.

    Never raises, whatever the header contains. During a rotation there are two signatures; one match is enough.
    """
    pairs = [part.strip().partition("=")[::2] for part in (header or "").split(",")]
    timestamp = next((value for name, value in pairs if name == "t"), "")
    if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= 15):
        return False
    if time.time() - int(timestamp) > tolerance_seconds:
        return False
    signed = timestamp.encode() + b"." + body
    expected = hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest().encode()
    # Compared in constant time, and never stopping at a match.
    given = [value.encode("utf-8", "replace") for name, value in pairs if name == "v1"]
    return sum(hmac.compare_digest(expected, signature) for signature in given) > 0

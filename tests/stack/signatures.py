"""Signature verification for receivers, written from the specification and independent of the app's code."""

import hashlib
import hmac
import time

MAX_AGE_SECONDS = 300


def is_genuine(secret: str, header: str, body: bytes, now: float | None = None) -> bool:
    """Whether a `v1` in the header `t=<unix>,v1=<hex>[,v1=<hex>]` matches the secret, and `t` is not too old."""
    parts = [part.strip().partition("=") for part in header.split(",")]
    sent_at = next((value for name, _, value in parts if name == "t"), "")
    if not sent_at.isdigit() or (now or time.time()) - int(sent_at) > MAX_AGE_SECONDS:
        return False
    expected = hmac.new(secret.encode(), sent_at.encode() + b"." + body, hashlib.sha256).hexdigest()
    # Compares every value, each in constant time.
    matches = [hmac.compare_digest(expected.encode(), value.encode()) for name, _, value in parts if name == "v1"]
    return any(matches)

"""The receiver's side of a delivery's signature, written from the specification and not from the app's code."""

import hashlib
import hmac
import time

MAX_AGE_SECONDS = 300


def is_genuine(secret: str, header: str, body: bytes, now: float | None = None) -> bool:
    """Whether one `v1` of a header `t=<unix>,v1=<hex>[,v1=<hex>]` is the secret's, and its time not too old."""
    parts = [part.strip().partition("=") for part in header.split(",")]
    sent_at = next((value for name, _, value in parts if name == "t"), "")
    if not sent_at.isdigit() or (now or time.time()) - int(sent_at) > MAX_AGE_SECONDS:
        return False
    expected = hmac.new(secret.encode(), sent_at.encode() + b"." + body, hashlib.sha256).hexdigest()
    # No short cut: every value is compared, in constant time.
    matches = [hmac.compare_digest(expected.encode(), value.encode()) for name, _, value in parts if name == "v1"]
    return any(matches)

"""The signature on every delivery (public API, part 6): HMAC-SHA256 over `t + "." + body`."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence


def sign(secrets: Sequence[str], timestamp: int, body: bytes) -> str:
    """The value of X-Service-Signature: a `v1` for each secret, in order. The key is the whole secret as UTF-8."""
    signed = b"%d." % timestamp + body
    values = (hmac.digest(secret.encode(), signed, hashlib.sha256).hex() for secret in secrets)
    return f"t={timestamp}," + ",".join(f"v1={value}" for value in values)

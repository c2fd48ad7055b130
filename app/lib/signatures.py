"""The signature on every delivery (public API, part 6): HMAC-SHA256 over `t + "." + body`."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass

# How old `t` may be when the receiver checks it (public API, part 6).
TOLERANCE_SECONDS = 300
_NUMBER = re.compile(r"[0-9]{1,15}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Signature:
    """The parts of an X-Service-Signature header. `timestamp` is None if there is no numeric `t`."""

    timestamp: int | None
    values: tuple[str, ...]


def sign(secrets: Sequence[str], timestamp: int, body: bytes) -> str:
    """Returns X-Service-Signature: a `v1` for each secret, in order. The key is the secret's UTF-8."""
    signed = b"%d." % timestamp + body
    values = (hmac.digest(secret.encode(), signed, hashlib.sha256).hex() for secret in secrets)
    return f"t={timestamp}," + ",".join(f"v1={value}" for value in values)


def parse(header: str) -> Signature:
    """Parses the value of an X-Service-Signature header. Accepts any text."""
    parts = [part.strip().partition("=") for part in header.split(",")]
    times = [value for name, _, value in parts if name == "t" and _NUMBER.fullmatch(value)]
    return Signature(int(times[0]) if times else None, tuple(value for name, _, value in parts if name == "v1"))


def is_signed(secret: str, signature: Signature, body: bytes) -> bool:
    """Whether one of the signature's values fits `body` and `secret`. Does not check the time's age.

    False without a timestamp. Compares in constant time.
    """
    if signature.timestamp is None:
        return False
    expected = hmac.digest(secret.encode(), b"%d." % signature.timestamp + body, hashlib.sha256).hex()
    return any(hmac.compare_digest(expected.encode(), value.encode()) for value in signature.values)

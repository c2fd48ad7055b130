"""API tokens: `bhp_`, 30 random base62 characters (178 bits), and a CRC-32 for secret scanners."""

from __future__ import annotations

import hashlib
import secrets
import string
import zlib

_ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
PREFIX = "bhp_"
_RANDOM = 30
_CHECKSUM = 6


def new() -> str:
    """Returns a new random token."""
    body = "".join(secrets.choice(_ALPHABET) for _ in range(_RANDOM))
    return PREFIX + body + _checksum(body)


def is_token(text: str) -> bool:
    """Whether `text` has the format and checksum of a token. It need not have been issued."""
    body, checksum = text[len(PREFIX) : -_CHECKSUM], text[-_CHECKSUM:]
    return text.startswith(PREFIX) and len(body) == _RANDOM and text.isascii() and checksum == _checksum(body)


def digest(token: str) -> bytes:
    """Returns the SHA-256 of a token. The database stores nothing else of it."""
    return hashlib.sha256(token.encode()).digest()


def _checksum(body: str) -> str:
    number, digits = zlib.crc32(body.encode()), ""
    for _ in range(_CHECKSUM):
        number, digit = divmod(number, len(_ALPHABET))
        digits = _ALPHABET[digit] + digits
    return digits

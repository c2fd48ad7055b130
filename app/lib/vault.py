"""Secrets at rest: encrypted with Fernet under the newest of several keys, any of which decrypts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from cryptography.fernet import Fernet, InvalidToken, MultiFernet


def encrypt(keys: Sequence[bytes], secret: str) -> bytes:
    """Encrypts the secret under the first key."""
    return _fernet(tuple(keys)).encrypt(secret.encode())


@lru_cache(maxsize=10_000)
def decrypt(keys: tuple[bytes, ...], sealed: bytes) -> str:
    """Decrypts the secret. Raises cryptography.fernet.InvalidToken if none of the keys fits."""
    return _fernet(keys).decrypt(sealed).decode()


def is_readable(keys: Sequence[bytes], sealed: bytes) -> bool:
    """Whether one of the keys decrypts `sealed`."""
    try:
        _fernet(tuple(keys)).decrypt(sealed)
    except InvalidToken:
        return False
    return True


def renew(keys: Sequence[bytes], sealed: bytes) -> bytes:
    """Encrypts the secret anew, unless the newest key encrypted it. Raises fernet's InvalidToken."""
    return sealed if is_readable(keys[:1], sealed) else _fernet(tuple(keys)).rotate(sealed)


@lru_cache(maxsize=4)
def _fernet(keys: tuple[bytes, ...]) -> MultiFernet:
    return MultiFernet([Fernet(key) for key in keys])

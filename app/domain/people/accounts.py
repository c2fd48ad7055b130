"""Accounts: people's e-mail addresses and passwords."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from peewee import fn

from app.database import rows, transaction
from app.domain.people import sessions
from app.errors import Fault, Invalid, NotFound, Unavailable, valid
from app.lib import clock, ids, normalization
from app.models.accounts import Account, PasswordLink

SHORTEST_PASSWORD = 10
LONGEST_PASSWORD = 1000
LONGEST_EMAIL = 254

# A hash takes 64 MiB of memory and almost 100 ms of CPU time. A process computes two at once and lets four more
# requests wait. Without this bound, sign-ins could occupy all threads of a web process.
_HASHING = threading.BoundedSemaphore(2)
_WAITING = threading.BoundedSemaphore(6)
_hasher = PasswordHasher()


def find(email: str) -> Account | None:
    """Returns the account with that address, ignoring case; None if there is none."""
    text = email.strip()
    if not text or len(text) > LONGEST_EMAIL or "\0" in text:
        return None
    found: Account | None = Account.select().where(fn.lower(Account.email) == fn.lower(text)).first()
    return found


def get(account_id: str) -> Account:
    """Returns the account. Raises NotFound."""
    account: Account | None = Account.get_or_none(Account.id == account_id)
    if account is None:
        raise NotFound(f"There is no account {account_id}.")
    return account


def find_or_make(email: str) -> Account:
    """Returns the account with that address, created without a password if there is none.

    Raises Invalid if `email` is not an address.
    """
    address = valid("/email", normalization.email, email.strip())
    rows(
        "INSERT INTO accounts (id, email) VALUES (%s, %s) ON CONFLICT (lower(email)) DO NOTHING",
        (ids.new("acc"), address),
    )
    account = find(address)
    assert account is not None
    return account


def check_password(password: str) -> None:
    """Raises Invalid if the password is too short or too long."""
    if not SHORTEST_PASSWORD <= len(password) <= LONGEST_PASSWORD:
        detail = f"A password has {SHORTEST_PASSWORD} to {LONGEST_PASSWORD:,} characters."
        raise Invalid(Fault("/password", detail))


def set_password(account_id: str, password: str) -> None:
    """Sets the password, ends all sessions of the account and voids its open reset links.

    Raises Invalid if the password is too short or too long, and Unavailable if too many are being hashed.
    """
    hashed = hash_password(password)
    with transaction():
        store_password(account_id, hashed)


def hash_password(password: str) -> str:
    """Returns the hash for `store_password`. Slow, so call it before a transaction.

    Raises like `set_password`.
    """
    check_password(password)
    with _in_turn():
        return _hasher.hash(password)


def store_password(account_id: str, hashed: str) -> None:
    """Like `set_password`, in the caller's transaction. Locks the account, then its links."""
    Account.update(password_hash=hashed).where(Account.id == account_id).execute()
    sessions.end_all(account_id)
    is_open = PasswordLink.used_at.is_null() & (PasswordLink.purpose == "reset")
    PasswordLink.update(used_at=clock.now()).where(PasswordLink.account_id == account_id, is_open).execute()


def verify(email: str, password: str) -> Account | None:
    """Returns the account if the password is correct and the account is not disabled; otherwise None.

    Takes as long for an unknown address as for a wrong password. Raises Unavailable if too many passwords are being
    checked.
    """
    account = find(email)
    stored = account.password_hash if account is not None and account.disabled_at is None else None
    with _in_turn():
        nobodys = _nobodys_hash()
        try:
            _hasher.verify(stored or nobodys, password[: LONGEST_PASSWORD + 1])
        except (VerificationError, InvalidHashError):
            return None
    return account if stored is not None else None


@cache
def _nobodys_hash() -> str:
    return _hasher.hash("")


@contextmanager
def _in_turn() -> Iterator[None]:
    if not _WAITING.acquire(blocking=False):
        raise Unavailable("Too many people are signing in at this moment. Try again shortly.")
    try:
        with _HASHING:
            yield
    finally:
        _WAITING.release()

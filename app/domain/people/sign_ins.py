"""Signing in, and the limits on failed attempts."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from peewee import fn

from app import sql
from app.database import rows, transaction
from app.domain.people import accounts, sessions
from app.errors import SignInRefused, SignInThrottled
from app.lib import clock
from app.lib.addresses import network_of
from app.models.accounts import Account
from app.models.sessions import Session


@dataclass(frozen=True, slots=True)
class Limit:
    """How many attempts may fail within `span`, which begins with the first failure."""

    failures: int
    span: timedelta


# Limits an account from one address, so that somebody who guesses passwords is stopped soon.
PAIR = Limit(5, timedelta(minutes=15))
# Limits an address over all accounts. Higher, because a whole office may share an address.
ADDRESS = Limit(50, timedelta(minutes=15))
# Limits an account over all addresses. Does not count addresses from which its owner has signed in, so that a stranger
# with many addresses cannot lock the owner out.
ACCOUNT = Limit(50, timedelta(hours=1))


def sign_in(email: str, password: str, address: str, user_agent: str) -> str:
    """Begins a session and returns its token. `address`: the IP address of the request.

    Raises SignInRefused, which does not say why, SignInThrottled after too many failures, and Unavailable if too many
    people are signing in.
    """
    account = confirm(email, password, address)
    with transaction():
        # A password change ends all sessions. If the password was changed after the check, the old one must not begin a
        # session.
        unchanged = "SELECT 1 FROM accounts WHERE id = %s AND password_hash = %s FOR SHARE"
        if not rows(unchanged, (account.id, account.password_hash)):
            raise SignInRefused()
        return sessions.begin(account.id, address, user_agent)


def confirm(email: str, password: str, address: str) -> Account:
    """Returns the account if the password is correct. Counts failed attempts. Raises like `sign_in`."""
    limits = _limits(email, address)
    _count(limits)  # counted before the check of the password; otherwise, concurrent attempts could all pass
    account = accounts.verify(email, password)
    if account is None:
        raise SignInRefused()
    _take_back(limits)
    return account


def count_request(address: str) -> None:
    """Counts a request for a reset link like a failed attempt. Raises SignInThrottled.

    Every address is counted, so the limit does not reveal which accounts exist.
    """
    _count({_key("address", network_of(address)): ADDRESS})


def _limits(email: str, address: str) -> dict[bytes, Limit]:
    person, network = email.strip().replace("\0", "").lower(), network_of(address)
    limits = {_key("pair", person, network): PAIR, _key("address", network): ADDRESS}
    if not _is_known(person, address):
        limits[_key("account", person)] = ACCOUNT
    return limits


def _is_known(email: str, address: str) -> bool:
    # One statement, whether or not the account exists, so that the time does not reveal it.
    found = Session.select().join(Account, on=(Account.id == Session.account_id))
    return bool(found.where(fn.lower(Account.email) == fn.lower(email), Session.address == address).exists())


def _key(*parts: str) -> bytes:
    return hashlib.sha256("\0".join(parts).encode()).digest()


def _count(limits: Mapping[bytes, Limit]) -> None:
    """Counts a failed attempt. Raises SignInThrottled, uncounted if a limit was reached before."""
    _refuse_beyond(limits, _standing(limits))
    now = clock.now()
    keys = sorted(limits)  # in one order, so that two attempts do not deadlock
    values = {"keys": keys, "ends": [now + limits[key].span for key in keys], "now": now}
    _refuse_beyond(limits, rows(sql.load("count_sign_in_failures"), values))


def _standing(limits: Mapping[bytes, Limit]) -> list[tuple[Any, ...]]:
    standing = "SELECT key, failures + 1, ends_at FROM sign_in_failures WHERE key = ANY(%s) AND ends_at > %s"
    return rows(standing, (list(limits), clock.now()))


def _refuse_beyond(limits: Mapping[bytes, Limit], counted: Sequence[Any]) -> None:
    over = [ends_at for key, failures, ends_at in counted if failures > limits[bytes(key)].failures]
    if over:
        raise SignInThrottled(max(1, math.ceil((max(over) - clock.now()).total_seconds())))


def _take_back(limits: Mapping[bytes, Limit]) -> None:
    """Uncounts the successful attempt, and deletes the account's failures from this network."""
    rows("UPDATE sign_in_failures SET failures = failures - 1 WHERE key = ANY(%s)", (list(limits),))
    rows("DELETE FROM sign_in_failures WHERE key = ANY(%s)", ([key for key in limits if limits[key] is PAIR],))

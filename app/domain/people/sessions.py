"""Sessions: who has signed in, from where, and which workspaces they may enter."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from peewee import fn

from app import realtime, sql
from app.database import database, rows
from app.lib import clock, ids, token_format
from app.models.sessions import Session
from app.models.visits import Visit

# How long a session lasts, and how long it lasts without being used.
LIFE = timedelta(days=30)
IDLE = timedelta(days=7)
# How old `seen_at` may get before it is written again: not every request should write.
_SEEN_EVERY = timedelta(minutes=1)
LONGEST_AGENT = 200
# The most sessions of an account, and the most workspaces that it can belong to.
MOST_SESSIONS = 50
MOST_MEMBERSHIPS = 100


@dataclass(frozen=True, slots=True)
class Membership:
    """An account's membership of a workspace. `availability`: `available` or `away`."""

    member_id: str
    workspace_id: str
    workspace_name: str
    role: str
    availability: str


@dataclass(frozen=True, slots=True)
class Signed:
    """Somebody who has signed in."""

    session_id: str
    account_id: str
    email: str
    is_support: bool
    memberships: tuple[Membership, ...]
    # How long the oldest waiting write of the viewed workspace has been due; 0 if none waits.
    delay_seconds: float

    def membership(self, workspace_id: str) -> Membership | None:
        """Returns the membership of that workspace; None if the account has none."""
        return next((each for each in self.memberships if each.workspace_id == workspace_id), None)


def begin(account_id: str, address: str, user_agent: str) -> str:
    """Begins a session, and returns its token. Ends the oldest sessions beyond MOST_SESSIONS."""
    token, now = secrets.token_urlsafe(32), clock.now()
    Session.insert(
        id=ids.new("ses"),
        token_hash=token_format.digest(token),
        account_id=account_id,
        address=address,
        user_agent=user_agent[:LONGEST_AGENT].replace("\0", ""),
        created_at=now,
        seen_at=now,
        expires_at=now + LIFE,
    ).execute()
    rows(
        """
        UPDATE sessions SET ended_at = %(now)s WHERE ended_at IS NULL AND account_id = %(account_id)s AND id <= (
            SELECT id FROM sessions WHERE account_id = %(account_id)s AND ended_at IS NULL AND expires_at > %(now)s
            ORDER BY id DESC OFFSET %(most)s LIMIT 1)
        """,
        {"account_id": account_id, "now": now, "most": MOST_SESSIONS},
    )
    return token


def find(token: str, workspace_id: str | None = None, *, is_use: bool = True) -> Signed | None:
    """Returns the person signed in with this token; None if there is no such live session.

    A session that is not used for IDLE ends; with `is_use` false, this look-up does not count as use. `workspace_id`:
    the workspace being viewed, for `delay_seconds`; the person need not belong to it.
    """
    now = clock.now()
    asked = {"digest": token_format.digest(token), "workspace_id": workspace_id, "now": now, "idle_since": now - IDLE}
    found = rows(sql.prepared("find_session"), {**asked, "most": MOST_MEMBERSHIPS})
    if not found:
        return None
    session_id, seen_at, account_id, email, is_support, delay_seconds, *_ = found[0]
    if is_use and now - seen_at > _SEEN_EVERY:
        # If several requests find `seen_at` outdated at once, only one of them writes.
        Session.update(seen_at=now).where(Session.id == session_id, Session.seen_at == seen_at).execute()
    memberships = tuple(Membership(*each[6:]) for each in found if each[6] is not None)
    return Signed(session_id, account_id, email, is_support, memberships, delay_seconds or 0.0)


def end(session_id: str) -> None:
    """Ends the session at once. Safe to repeat."""
    _end(Session.id == session_id)


def end_all(account_id: str, except_: str | None = None) -> None:
    """Ends all sessions of the account at once, except the one with the id `except_`."""
    _end((Session.account_id == account_id) & (Session.id != (except_ or "")))


def _end(which: Any) -> None:
    ended = Session.update(ended_at=clock.now()).where(which, Session.ended_at.is_null())
    for account_id in {session.account_id for session in ended.returning(Session).execute()}:
        database.after_commit(partial(realtime.check_admission, "account", account_id))


def of(account_id: str) -> list[Session]:
    """Returns the live sessions of the account, newest first, up to MOST_SESSIONS."""
    now = clock.now()
    is_live = Session.ended_at.is_null() & (Session.expires_at > now) & (Session.seen_at > now - IDLE)
    found = Session.select().where(Session.account_id == account_id, is_live)
    return list(found.order_by(Session.id.desc()).limit(MOST_SESSIONS))


def last_use(account_id: str) -> datetime | None:
    """Returns the latest time at which a session of the account may have had a page in view.

    Up to a minute late, because `seen_at` is written once a minute. None if there is no session.
    """
    newest = Session.select(fn.MAX(Session.seen_at)).where(Session.account_id == account_id, Session.ended_at.is_null())
    seen_at: datetime | None = newest.scalar()
    return seen_at and seen_at + _SEEN_EVERY


def visit_in(account_id: str, workspace_id: str) -> Visit | None:
    """Returns the visit that lets the account act in the workspace now; None if there is none."""
    theirs = Visit.in_workspace(workspace_id).where(Visit.account_id == account_id, Visit.expires_at > clock.now())
    found: Visit | None = theirs.order_by(Visit.id.desc()).first()
    return found

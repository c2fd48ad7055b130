"""API tokens: shown once, looked up by digest, cached for less time than a revocation may take."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from app import realtime
from app.database import database, rows, transaction
from app.domain.work import audit
from app.errors import Conflict, Fault, Invalid, NotFound, Unauthenticated, valid
from app.lib import clock, ids, normalization, token_format
from app.lib.caches import Cache
from app.models.tokens import Token

RESTRICTIONS = ("contacts", "inbox", "automations", "billing", "webhooks")
# For requests that only an unrestricted token may make: no token has this restriction.
UNRESTRICTED = "unrestricted"

# A revoked token must stop working within a second. Half of that is left for the request itself.
_REMEMBERED_SECONDS = 0.5
_MOST_REMEMBERED = 10_000
# How old `last_used_at` may get before it is written again: not every request should write.
_USE_NOTED_EVERY = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Caller:
    """The token and workspace of a valid request."""

    token_id: str
    token_name: str
    workspace_id: str
    workspace_name: str
    restrictions: tuple[str, ...] | None  # None for an unrestricted token
    expires_at: datetime | None
    last_used_at: datetime | None

    def may(self, restriction: str | None) -> bool:
        """Returns whether the token covers requests with this restriction; None: they need none."""
        return self.restrictions is None or restriction is None or restriction in self.restrictions


def issue(
    workspace_id: str,
    name: str,
    restrictions: Sequence[str] | None = None,
    expires_in_seconds: int | None = None,
    *,
    token_id: str | None = None,
    actor_id: str | None = None,
) -> tuple[str, str]:
    """Creates a token; returns its id and the token, which cannot be shown again. Raises Invalid.

    `token_id`: given by a form that may be sent twice; raises Conflict if that token exists already. `actor_id`: who
    created the token, for the audit log; None to note nothing.
    """
    valid("/name", normalization.name, name)
    if unknown := [each for each in restrictions or () if each not in RESTRICTIONS]:
        raise Invalid(Fault("/restrictions", f"'{unknown[0]}' is none of {', '.join(RESTRICTIONS)}."))
    token, token_id = token_format.new(), token_id or ids.new("tok")
    expires_at = clock.now() + timedelta(seconds=expires_in_seconds) if expires_in_seconds is not None else None
    with transaction():
        made = Token.insert(
            id=token_id,
            workspace_id=workspace_id,
            name=name.strip(),
            digest=token_format.digest(token),
            restrictions=sorted(set(restrictions)) if restrictions else None,
            expires_at=expires_at,
        )
        if not list(made.on_conflict_ignore().returning(Token.id).execute()):
            raise Conflict("This form was sent before, and has made its token.")
        if actor_id is not None:
            detail = {"name": name.strip(), "restrictions": restrictions or None, "expires_at": expires_at}
            audit.note(workspace_id, actor_id, "tokens.create", "token", token_id, detail)
    return token_id, token


def revoke(token_id: str, workspace_id: str | None = None, actor_id: str | None = None) -> None:
    """Revokes a token. Every process refuses it within a second, and its live streams end.

    Raises NotFound, also for a token of another workspace than `workspace_id`, if given. `actor_id`: who revoked it,
    for the audit log; None for a command. Safe to repeat.
    """
    token = Token.get_or_none(Token.id == token_id)
    if token is None or workspace_id not in (None, token.workspace_id):
        raise NotFound(f"There is no token {token_id}.")
    with transaction():
        is_live = (Token.id == token_id) & Token.revoked_at.is_null()
        if Token.update(revoked_at=clock.now()).where(is_live).execute():
            audit.note(token.workspace_id, actor_id, "tokens.revoke", "token", token_id, {"name": token.name})
        database.after_commit(partial(realtime.check_admission, "token", token_id))


def state_of(token: Token) -> str:
    """Returns `active`, `expired` or `revoked`."""
    if token.revoked_at is not None:
        return "revoked"
    return "expired" if token.expires_at is not None and token.expires_at <= clock.now() else "active"


def of_workspace(workspace_id: str) -> list[dict[str, Any]]:
    """Returns all tokens of a workspace, ended ones included, oldest first, without the secrets."""
    shown = ("id", "name", "restrictions", "created_at", "expires_at", "revoked_at", "last_used_at")
    found = Token.select().where(Token.workspace_id == workspace_id).order_by(Token.id)
    return [{name: getattr(token, name) for name in shown} for token in found]


def authenticate(token: str, may_remember: bool = True) -> Caller:
    """Returns the token's caller. Raises Unauthenticated for an unknown, expired or revoked token.

    Without `may_remember`, asks the database instead of the cache, so that a committed revocation counts.
    """
    now, seen = time.monotonic(), _remembered.get(token)
    if may_remember and seen is not None and now - seen[0] < _REMEMBERED_SECONDS:
        caller = seen[1]
    elif token_format.is_token(token):
        # Cached with the time before the query: a revocation may commit while the result is on its way.
        caller = _load(token_format.digest(token))
        _remembered.put(token, (now, caller), 1)
    else:
        raise Unauthenticated()
    if caller.expires_at is not None and caller.expires_at <= clock.now():
        raise Unauthenticated("The token has expired. Make a new one.")
    return caller


# Callers by token, each with the time just before it was looked up.
_remembered: Cache[str, tuple[float, Caller]] = Cache(_MOST_REMEMBERED)


def _load(digest: bytes) -> Caller:
    found = rows(
        """
        SELECT tokens.id, tokens.name, workspaces.id, workspaces.name, tokens.restrictions, tokens.expires_at,
            tokens.last_used_at
        FROM tokens JOIN workspaces ON workspaces.id = tokens.workspace_id
        WHERE tokens.digest = %s AND tokens.revoked_at IS NULL
        """,
        (digest,),
    )
    if not found:
        raise Unauthenticated()
    token_id, name, workspace_id, workspace_name, restrictions, expires_at, last_used_at = found[0]
    _note_use(token_id, last_used_at)
    allowed = tuple(restrictions) if restrictions is not None else None
    return Caller(token_id, name, workspace_id, workspace_name, allowed, expires_at, last_used_at)


def _note_use(token_id: str, last_used_at: datetime | None) -> None:
    now = clock.now()
    if last_used_at is None or now - last_used_at > _USE_NOTED_EVERY:
        # If several requests find `last_used_at` outdated at once, only one of them writes.
        unnoted = Token.last_used_at.is_null() | (Token.last_used_at == last_used_at)
        Token.update(last_used_at=now).where(Token.id == token_id, unnoted).execute()

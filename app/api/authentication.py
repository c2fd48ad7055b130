"""Who calls, and whether they may: every route of the API declares it with `authorize`."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from flask import g
from flask.globals import request_ctx

from app.domain import tokens
from app.domain.tokens import Caller
from app.errors import InsufficientScope, NotFound, Unauthenticated

View = Callable[..., Any]


def authorize(restriction: str | None) -> Callable[[View], View]:
    """Lets in a valid token that has `restriction` (None: any token), for its own workspace only.

    Refuses with 401 without one, 404 for another workspace in the path, 403 where the restriction is lacking,
    in this order. The workspace is taken out of the view's arguments: it is the caller's.
    """

    def decorate(view: View) -> View:
        @wraps(view)
        def authorized(*args: Any, workspace: str | None = None, **kwargs: Any) -> Any:
            who = g.caller = tokens.authenticate(_bearer())
            if workspace is not None and workspace != who.workspace_id:
                raise NotFound()
            if restriction is not None:
                require(restriction)
            return view(*args, **kwargs)

        authorized.restriction = restriction  # type: ignore[attr-defined]
        return authorized

    return decorate


def caller() -> Caller:
    """Who the present request speaks for."""
    found: Caller = g.caller
    return found


def require(restriction: str) -> None:
    """Raises InsufficientScope if the caller's token is restricted to other things."""
    if not caller().may(restriction):
        raise InsufficientScope(f"This needs a token with access to {restriction}, or an unrestricted one.")


def _bearer() -> str:
    scheme, _, token = request_ctx.request.environ.get("HTTP_AUTHORIZATION", "").partition(" ")
    if scheme.lower() != "bearer":
        raise Unauthenticated()
    return str(token.strip())

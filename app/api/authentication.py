"""Authentication and authorization: every route of the API declares its access with `authorize`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from flask import Flask, Request, g
from flask.globals import request_ctx

from app.api import rate_limits
from app.domain.people import tokens
from app.domain.people.tokens import UNRESTRICTED, Caller
from app.errors import InsufficientScope, NotFound, Unauthenticated
from app.lib import token_format

_HEADER = "Send it as 'Authorization: Bearer <token>'."
_QUERY_NAMES = ("token", "access_token", "api_key", "apikey", "key")
View = TypeVar("View", bound=Callable[..., Any])


def authorize(restriction: str | None, *others: str) -> Callable[[View], View]:
    """Declares that a route needs a token of its workspace with `restriction`; None: any valid token.

    UNRESTRICTED requires an unrestricted token. A token with one of `others` is accepted, too.
    """

    def decorate(view: View) -> View:
        view.restriction = restriction  # type: ignore[attr-defined]
        view.other_restrictions = others  # type: ignore[attr-defined]
        return view

    return decorate


def install(app: Flask) -> None:
    """Checks every request to a route with `authorize`, before reading its query and body.

    In this order: 401 without a valid token, 429 above the rate limit, 404 for another workspace in the path, 403
    without the restriction. Views do not get the workspace as an argument: it is the caller's. OPTIONS needs no token,
    because it reveals only what the OpenAPI document shows.
    """

    def check() -> None:
        request = request_ctx.request
        view = app.view_functions.get(endpoint) if (endpoint := request.endpoint) else None
        if view is None and request.method != "OPTIONS" and request.path.startswith("/api/v1/"):
            # Counts requests without a route, or with a wrong method, for their token as well.
            with suppress(Unauthenticated):
                g.caller = tokens.authenticate(_bearer(request))
                rate_limits.count_request(g.caller.token_id)
        if view is None or not hasattr(view, "restriction") or request.method == "OPTIONS":
            return
        who = g.caller = tokens.authenticate(_bearer(request))
        rate_limits.count_request(who.token_id)
        if request.view_args and request.view_args.pop("workspace", who.workspace_id) != who.workspace_id:
            raise NotFound("The token is of another workspace than the one in the path.")
        if view.restriction is not None:
            _must_have(who, view.restriction, *getattr(view, "other_restrictions", ()))

    app.before_request(check)


def caller() -> Caller:
    """Returns the caller of the current request: its token and workspace."""
    found: Caller = g.caller
    return found


def require(restriction: str | None) -> None:
    """Raises InsufficientScope if the caller's token does not include `restriction`."""
    _must_have(caller(), restriction)


def token_for(restriction: str | None, *others: str, quote: str = "") -> str:
    """Describes the tokens that `authorize` admits with these arguments.

    `quote` encloses each name.
    """
    if restriction is None:
        return "any valid token"
    if restriction == UNRESTRICTED:
        return "an unrestricted token"
    names = " or ".join(f"{quote}{each}{quote}" for each in (restriction, *others))
    return f"a token with access to {names}, or an unrestricted one"


def _must_have(who: Caller, restriction: str | None, *others: str) -> None:
    if not any(map(who.may, (restriction, *others))):
        raise InsufficientScope(f"This needs {token_for(restriction, *others)}.")


def _bearer(request: Request) -> str:
    """Returns the request's token. Raises Unauthenticated, which says where a token must be."""
    given = request.headers.get("Authorization", "")
    scheme, _, token = given.partition(" ")
    if scheme.lower() == "bearer" and (token := token.strip(" ")):
        if token.startswith(token_format.PREFIX) and not token_format.is_token(token):
            raise Unauthenticated("The token is not whole: it was cut, or something was added. Copy all of it again.")
        return token
    if scheme.lower() == "basic":
        raise Unauthenticated(f"This API does not know Basic authentication. {_HEADER}")
    if token_format.is_token(given.strip(" ")):
        raise Unauthenticated(f"'Bearer' is missing before the token. {_HEADER}")
    if "X-API-Key" in request.headers:
        raise Unauthenticated(f"A token is not read from X-API-Key. {_HEADER}")
    if any(name in request.args for name in _QUERY_NAMES):
        raise Unauthenticated(f"A token is not read from the address, where logs would keep it. {_HEADER}")
    raise Unauthenticated()

"""Who calls, and whether they may: every route of the API declares it with `authorize`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from flask import Flask, Request, g
from flask.globals import request_ctx

from app.api import limits
from app.domain import tokens
from app.domain.tokens import Caller
from app.errors import InsufficientScope, NotFound, Unauthenticated

View = TypeVar("View", bound=Callable[..., Any])


def authorize(restriction: str | None) -> Callable[[View], View]:
    """Declares who may use a route: a valid token with `restriction` (None: any token), for its own workspace only."""

    def decorate(view: View) -> View:
        view.restriction = restriction  # type: ignore[attr-defined]
        return view

    return decorate


def install(app: Flask) -> None:
    """Checks every request to a route that has declared `authorize`, before anything else of it is looked at.

    Refuses with 401 without a valid token, 429 where the token has no more requests, 404 for another workspace in the
    path, 403 where the restriction is lacking, in this order. The workspace is taken out of the view's arguments: it
    is the caller's. OPTIONS is answered to anyone: it tells what the document tells.
    """

    def check() -> None:
        request = request_ctx.request
        view = app.view_functions.get(endpoint) if (endpoint := request.endpoint) else None
        if view is None and request.method != "OPTIONS" and request.path.startswith("/api/v1/"):
            _count_astray(request)
        if view is None or not hasattr(view, "restriction") or request.method == "OPTIONS":
            return
        who = g.caller = tokens.authenticate(_bearer(request))
        limits.count_request(who.token_id)
        if request.view_args and request.view_args.pop("workspace", who.workspace_id) != who.workspace_id:
            raise NotFound()
        if view.restriction is not None:
            _must_have(who, view.restriction)

    app.before_request(check)


def caller() -> Caller:
    """Who the present request speaks for."""
    found: Caller = g.caller
    return found


def require(restriction: str) -> None:
    """Raises InsufficientScope if the caller's token is restricted to other things."""
    _must_have(caller(), restriction)


def _must_have(who: Caller, restriction: str) -> None:
    if not who.may(restriction):
        raise InsufficientScope(f"This needs a token with access to {restriction}, or an unrestricted one.")


def _count_astray(request: Request) -> None:
    """Counts a request that leads nowhere, or has a method that is not allowed, to its token if that is valid."""
    with suppress(Unauthenticated):
        limits.count_request(tokens.authenticate(_bearer(request)).token_id)


def _bearer(request: Request) -> str:
    scheme, _, token = request.environ.get("HTTP_AUTHORIZATION", "").partition(" ")
    if scheme.lower() != "bearer":
        raise Unauthenticated()
    return str(token.strip(" "))

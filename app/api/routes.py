"""Declares the routes of the API: method, path, needed access, body and response in one place."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from flask import Response

from app.api.authentication import authorize, caller
from app.api.lists import PageQuery, envelope
from app.api.openapi.problems import response_name
from app.api.parsing.blueprints import Blueprint
from app.api.responses import respond
from app.domain import resources
from app.domain.resources import JobSchema
from app.lib.schemas import Query, RequestBody, ResponseBody

Document = dict[str, Any]
View = Callable[..., Any]
# The arguments of `authorize`: a single one, or a tuple.
Needs = str | tuple[str, ...] | None

_WAITED = "With `Prefer: wait=N`, if the write ended in time."


def reads(
    blueprint: Blueprint,
    path: str,
    needs: Needs,
    schema: type[ResponseBody],
    query: type[Query] | None = None,
    **options: Any,
) -> Callable[[View], View]:
    """Declares a GET of `path` below the workspace's address, answered with what the view returns.

    With a PageQuery, the view returns a page of items of `schema`; otherwise one resource, which becomes `data`. The
    view gets the loaded `query` as its last positional argument. `options` are passed to `blueprint.route`.
    """
    is_list = query is not None and issubclass(query, PageQuery)
    body = envelope(schema, many=True) if is_list else envelope(schema)

    def decorate(read: View) -> View:
        @wraps(read)
        def view(*args: Any, **names: Any) -> Response:
            found = read(*args, **names)
            return respond(200, found if is_list else {"data": found})

        documented = blueprint.response(200, body)(view)
        if query is not None:
            documented = blueprint.arguments(query)(documented)
        _register(blueprint, f"GET {path}", needs, documented, options)
        return read

    return decorate


def shows(blueprint: Blueprint, noun: str, needs: Needs, schema: type[ResponseBody], about: str) -> None:
    """Declares the route that shows the resource `noun` of `resources.TYPES`. `about` describes it."""
    kind = resources.TYPES[noun]

    def show(**names: str) -> Document:
        return kind.represent(kind.find(caller().workspace_id, names[f"{noun}_id"]))

    show.__name__, show.__doc__ = f"show_{noun}", about
    reads(blueprint, f"/{kind.path}/<{noun}_id>", needs, schema)(show)


def accepts(
    blueprint: Blueprint,
    route: str,
    needs: Needs,
    result: type[ResponseBody] | None,
    body: type[RequestBody] | None = None,
    *,
    made: bool = False,
    required: bool = True,
    secret: Any = None,
    **options: Any,
) -> Callable[[View], View]:
    """Declares a write below the workspace's address, such as `POST /sales`.

    The view responds with the job (202), or with `result` if the caller waits. `result` is None for a deletion (204).
    `made`: the write may create a resource (201). The view gets the loaded `body` as its last positional argument;
    unless it is `required`, a missing body counts as `{}`. `secret`: the schema of the field `secret` beside `data`.
    `options` are passed to `blueprint.route`.
    """
    beside: dict[str, Any] = {} if secret is None else {"secret": secret}

    def decorate(view: View) -> View:
        documented = blueprint.response(202, envelope(JobSchema, **beside), description="Accepted; the job.")(view)
        shown: dict[str, Any] = {} if result is None else {"schema": envelope(result, **beside)}
        for status in (204,) if result is None else (200, 201) if made else (200,):
            documented = blueprint.alt_response(status, description=_WAITED, success=True, **shown)(documented)
        documented = blueprint.alt_response(409, response_name(409))(documented)
        if body is not None:
            documented = blueprint.arguments(body, required=required)(documented)
        _register(blueprint, route, needs, documented, options)
        return view

    return decorate


def _register(blueprint: Blueprint, route: str, needs: Needs, view: View, options: dict[str, Any]) -> None:
    method, _, path = route.partition(" ")
    authorized = authorize(*needs) if isinstance(needs, tuple) else authorize(needs)
    blueprint.route(f"/workspaces/<workspace>{path}", methods=[method], **options)(authorized(view))

"""Routes that read: each states its path, the access that it needs and its response once."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from flask import Response

from app.api.authentication import authorize, caller
from app.api.lists import PageQuery, envelope
from app.api.parsing.blueprints import Blueprint
from app.api.responses import respond
from app.domain import resources
from app.lib.schemas import Query, ResponseBody

Document = dict[str, Any]
View = Callable[..., Document]
Needs = str | tuple[str, ...] | None


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
    view gets the loaded `query` as its last positional argument. `needs`: the argument of `authorize`, or a tuple of
    several. `options` are those of `blueprint.route`.
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
        authorized = authorize(*needs if isinstance(needs, tuple) else (needs,))(documented)
        blueprint.route(f"/workspaces/<workspace>{path}", methods=["GET"], **options)(authorized)
        return read

    return decorate


def shows(blueprint: Blueprint, noun: str, needs: Needs, schema: type[ResponseBody], about: str) -> None:
    """Declares the route that shows a resource, as responses to writes show it.

    `noun` is its name in `resources.TYPES`. `about` describes the route.
    """
    kind = resources.TYPES[noun]

    def show(**names: str) -> Document:
        return kind.represent(kind.find(caller().workspace_id, names[f"{noun}_id"]))

    show.__name__, show.__doc__ = f"show_{noun}", about
    reads(blueprint, f"/{kind.path}/<{noun}_id>", needs, schema)(show)

"""Lists: cursors, limits, the envelope, and the two addresses of every collection."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from flask import request
from marshmallow import fields, validate

from app.api.authentication import caller
from app.api.parsing import Blueprint, Schema
from app.config import settings
from app.errors import Fault, Invalid
from app.lib import cursors, json
from app.models.base import page_before

View = Callable[..., Any]

DEFAULT_LIMIT = 50
MOST = 100


class Whole(fields.Integer):
    """A whole number in a query: digits alone, and not all that Python's int() reads."""

    def _deserialize(self, value: Any, *args: Any, **options: Any) -> Any:
        if not (value.isascii() and value.isdigit()):
            raise self.make_error("invalid", input=value)
        return super()._deserialize(value, *args, **options)


class PageQuery(Schema):
    """What every list takes; filters are added by inheriting."""

    limit = Whole(
        load_default=DEFAULT_LIMIT,
        validate=validate.Range(1, MOST, error="It must be from {min} to {max}."),
        metadata={"description": f"How many items, 1 to {MOST}."},
    )
    cursor = fields.String(metadata={"description": "`meta.nextCursor` of the page before."})


class Meta(Schema):
    nextCursor = fields.String(required=True, allow_none=True, metadata={"description": "Cursor of the next page."})
    hasMore = fields.Boolean(required=True, metadata={"description": "True while more pages exist."})


@cache
def envelope(item: type[Schema], *, many: bool = False, **further: Any) -> type[Schema]:
    """The schema of a response: `{"data": …}`, with `meta` for a list."""
    name = item.__name__.removesuffix("Schema") + "".join(f"With{member.title()}" for member in further)
    name += "List" if many else "Envelope"
    members: dict[str, Any] = {"data": fields.Nested(item, many=many, required=True), **further}
    if many:
        members["meta"] = fields.Nested(Meta, required=True)
    return type(name, (Schema,), members)


def collection(blueprint: Blueprint, path: str) -> Callable[[View], View]:
    """Routes a list at both its addresses: below a workspace, and alone for the token's own."""

    def decorate(view: View) -> View:
        blueprint.route(path, methods=["GET"], endpoint=f"{view.__name__}_of_token")(view)
        blueprint.route(f"/workspaces/<workspace>{path}", methods=["GET"], endpoint=view.__name__)(view)
        return view

    return decorate


def page(
    query: Any, model: Any, arguments: dict[str, Any], represent: Callable[[Any], dict[str, Any]]
) -> dict[str, Any]:
    """One page of `query`, in the envelope, in the model's order for these arguments.

    Raises Invalid for a cursor that is not of this list.
    """
    order = model.order(arguments)
    return page_of(
        lambda *last, limit: list(page_before(query, model, last, limit, order)), arguments, represent, order
    )


def page_of(
    find: Callable[..., list[Any]],
    arguments: dict[str, Any],
    represent: Callable[[Any], dict[str, Any]],
    order: Sequence[str] = ("id",),
) -> dict[str, Any]:
    """The same of what `find` finds: up to `limit` rows, after the one that has the values before it in `order`."""
    limit, scope = arguments["limit"], _scope(arguments)
    # One more says whether there is more.
    found = find(*_last(arguments.get("cursor"), scope, order), limit=limit + 1)
    shown, has_more = found[:limit], len(found) > limit
    next_cursor = cursors.seal(_key(), scope, [str(getattr(shown[-1], name)) for name in order]) if has_more else None
    return {"data": [represent(row) for row in shown], "meta": {"nextCursor": next_cursor, "hasMore": has_more}}


def _last(cursor: str | None, scope: str, order: Sequence[str]) -> Sequence[str | None]:
    """What the last row before the page has in the columns of `order`; None for each where the page is the first."""
    if cursor is None:
        return [None] * len(order)
    try:
        return cursors.unseal(_key(), scope, cursor)
    except ValueError as error:
        detail = "This is not a cursor of this list. Take it from meta.nextCursor, with the same filters."
        raise Invalid(Fault("/cursor", detail)) from error


def _scope(arguments: dict[str, Any]) -> str:
    # A cursor holds for the workspace, the collection and the filters it was made with; the limit may change.
    filters = {name: value for name, value in sorted(arguments.items()) if name not in ("limit", "cursor")}
    assert request.endpoint is not None
    return f"{caller().workspace_id}\n{request.endpoint.removesuffix('_of_token')}\n{json.dumps(filters).decode()}"


def _key() -> bytes:
    return hashlib.sha256(b"cursors" + settings().secret_keys[-1]).digest()

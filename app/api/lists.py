"""Lists: pages, cursors and envelopes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from flask import request
from marshmallow import fields, validate

from app.api.authentication import caller
from app.config import settings
from app.errors import Fault, Invalid
from app.lib import cursors, json
from app.lib.schemas import Query, ResponseBody, Whole, about
from app.models.base import page_before

DEFAULT_LIMIT = 50
MOST = 100


class PageQuery(Query):
    """The parameters of every list. Subclasses add filters."""

    limit = Whole(
        load_default=DEFAULT_LIMIT,
        validate=validate.Range(1, MOST, error="It must be from {min} to {max}."),
        metadata=about(f"How many items, 1 to {MOST}."),
    )
    cursor = fields.String(metadata=about("`meta.nextCursor` of the previous page."))


class Meta(ResponseBody):
    nextCursor = fields.String(allow_none=True, metadata=about("Cursor of the next page."))
    hasMore = fields.Boolean(metadata=about("True while more pages exist."))


@cache
def envelope(item: type[ResponseBody], *, many: bool = False, **further: Any) -> type[ResponseBody]:
    """Returns the schema `{"data": …}`, with `meta` for a list, and `further` members beside `data`."""
    name = item.__name__.removesuffix("Schema") + "".join(f"With{member.title()}" for member in further)
    name += "List" if many else "Envelope"
    members: dict[str, Any] = {"data": fields.Nested(item, many=many), "OPTIONAL": tuple(further), **further}
    if many:
        members["meta"] = fields.Nested(Meta)
    return type(name, (ResponseBody,), members)


def page(
    model: Any, arguments: dict[str, Any], represent: Callable[[Any], dict[str, Any]], query: Any = None
) -> dict[str, Any]:
    """Returns a page of the workspace's rows that match the arguments, in its envelope.

    The model has an order for these arguments. `query` may select other rows. Raises Invalid for a cursor of another
    list, workspace or filter.
    """
    order = model.order(arguments)
    query = model.matching(caller().workspace_id, arguments) if query is None else query
    return page_of(
        lambda *last, limit: list(page_before(query, model, last, limit, order)), arguments, represent, order
    )


def page_of(
    find: Callable[..., list[Any]],
    arguments: dict[str, Any],
    represent: Callable[[Any], dict[str, Any]],
    order: Sequence[str] = ("id",),
) -> dict[str, Any]:
    """Like `page`, with `find(*last, limit=…)`: returns rows after the values `last` of `order`."""
    limit, scope = arguments["limit"], _scope(arguments)
    # One extra row tells whether there is another page.
    found = find(*_last(arguments.get("cursor"), scope, order), limit=limit + 1)
    shown = found[:limit]
    last = [str(getattr(shown[-1], name)) for name in order] if len(found) > limit else None
    return _enveloped([represent(row) for row in shown], scope, last)


def scanned_page(
    find: Callable[[str | None, int], tuple[list[Any], str | None]],
    arguments: dict[str, Any],
    represent: Callable[[Any], dict[str, Any]],
) -> dict[str, Any]:
    """Like `page_of`, with `find(last_id, limit)`, which may return fewer rows than a full page.

    `find` also returns the identifier after which the list continues; None at the end of the list.
    """
    scope = _scope(arguments)
    [last_id] = _last(arguments.get("cursor"), scope, ("id",))
    found, next_id = find(last_id, arguments["limit"])
    return _enveloped([represent(row) for row in found], scope, next_id and [next_id])


def _enveloped(data: list[dict[str, Any]], scope: str, last: Sequence[str] | None) -> dict[str, Any]:
    """Returns the page; with a cursor after the row with the values `last` if the list continues."""
    next_cursor = cursors.seal(_key(), scope, last) if last else None
    return {"data": data, "meta": {"nextCursor": next_cursor, "hasMore": last is not None}}


def _last(cursor: str | None, scope: str, order: Sequence[str]) -> Sequence[str | None]:
    """Returns the `order` values to continue after; Nones without a cursor. Raises Invalid."""
    if cursor is None:
        return [None] * len(order)
    try:
        return cursors.unseal(_key(), scope, cursor)
    except ValueError as error:
        detail = "This is not a cursor of this list. Take it from meta.nextCursor, with the same filters."
        raise Invalid(Fault("/cursor", detail)) from error


def _scope(arguments: dict[str, Any]) -> str:
    # A cursor is valid for the workspace, collection and filters that it was issued for. Only the limit may change.
    given = (request.view_args or {}) | arguments
    filters = {name: value for name, value in sorted(given.items()) if name not in ("limit", "cursor")}
    return f"{caller().workspace_id}\n{request.endpoint}\n{json.dumps(filters).decode()}"


def _key() -> bytes:
    return hashlib.sha256(b"cursors" + settings().secret_keys[-1]).digest()

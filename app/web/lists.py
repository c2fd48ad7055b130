"""Lists: keyset pagination, the parameters of their addresses, and lists as CSV or JSON files."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flask import Response, request, url_for

from app.database import replica
from app.lib import cells, json
from app.models.base import page_before
from app.web.access import viewer

ROWS = 50
MOST_EXPORTED = 10_000


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a list. `next_address` is None on the last page, `first_address` on the first."""

    rows: list[Any]
    next_address: str | None
    first_address: str | None


def page_of(query: Any, model: Any) -> Page:
    """Returns the page of the query, newest first, after the row in the parameter `after`."""
    return sliced(lambda after, limit: list(page_before(query, model, [after], limit)))


def sliced(fetch: Callable[[str | None, int], Sequence[Any]], key: Callable[[Any], str] = lambda row: row.id) -> Page:
    """Like `page_of`, with `fetch(after, limit)` in place of a query. `key`: the value of `after`."""
    after = request.args.get("after") or None
    if after is not None and (len(after) > 200 or not after.isprintable()):
        after = None
    found = list(fetch(after, ROWS + 1))
    has_more = len(found) > ROWS
    rows = found[:ROWS]
    return Page(rows, address(after=key(rows[-1])) if has_more else None, address() if after else None)


def numbered(fetch: Callable[[str | None, int], Sequence[Any]]) -> Page:
    """Like `sliced`, for rows in the order of their numbers. Ignores an `after` that is no number."""

    def of_number(after: str | None, limit: int) -> Sequence[Any]:
        is_number = after is not None and after.isascii() and after.isdigit() and len(after) <= 9
        return fetch(after if is_number else None, limit)

    return sliced(of_number, lambda row: str(row.number))


def filters(*names: str) -> dict[str, str]:
    """Returns the named parameters, without empty, unprintable and overlong values."""
    return {
        name: value
        for name in names
        if (value := request.args.get(name, "").strip()) and len(value) <= 200 and value.isprintable()
    }


def address(**changes: str | None) -> str:
    """Returns this page's address with changed parameters; None removes one.

    Drops `after` and `format`, so that a list begins at its first page.
    """
    given: dict[str, Any] = {**request.args, "after": None, "format": None, **changes}
    # `url_for` interprets some names itself: the address must not select the scheme or page of our links.
    kept = {name: value for name, value in given.items() if value and name != "endpoint" and not name.startswith("_")}
    path: dict[str, Any] = {**(request.view_args or {})}
    if (who := viewer()) and who.workspace_id:
        path["workspace"] = who.workspace_id
    return url_for(str(request.endpoint), **{**kept, **path})


def wanted_format() -> str | None:
    """Returns `csv` or `json` if the address asks for a file; otherwise None."""
    asked = request.args.get("format")
    return asked if asked in ("csv", "json") else None


def file_of(read: Callable[[], Sequence[Mapping[str, Any]]], name: str) -> Response:
    """Returns the rows of `read`, all with the same keys, as the file that the address asks for.

    `read` must cap them at MOST_EXPORTED. It may query the replica, and may be called twice. In CSV, text that a
    spreadsheet would run as a formula gets an apostrophe.
    """
    rows = replica.may_read(read)()
    return _download(json.dumps(list(rows)) if wanted_format() == "json" else _csv(rows), name)


def streamed(batches: Iterable[Sequence[Mapping[str, Any]]], name: str) -> Response:
    """Like `file_of`, for any number of rows: reads a batch when the previous one has been sent.

    The batches are read after the request, so they must not depend on it.
    """
    return _download(_json_pieces(batches) if wanted_format() == "json" else _csv_pieces(batches), name)


def _download(content: bytes | str | Iterator[bytes] | Iterator[str], name: str) -> Response:
    asked = wanted_format()
    response = Response(content, mimetype="application/json" if asked == "json" else "text/csv")
    response.headers["Content-Disposition"] = f'attachment; filename="{name}.{asked}"'
    return response


def columns(row: Any, *names: str) -> dict[str, Any]:
    """Returns the named attributes of the row: columns of a file."""
    return {name: getattr(row, name) for name in names}


def _csv_pieces(batches: Iterable[Sequence[Mapping[str, Any]]]) -> Iterator[str]:
    for number, rows in enumerate(batches):
        yield _csv(rows, with_head=not number)


def _json_pieces(batches: Iterable[Sequence[Mapping[str, Any]]]) -> Iterator[bytes]:
    yield b"["
    for number, rows in enumerate(batches):
        yield (b"," if number else b"") + b",".join(json.dumps(dict(row)) for row in rows)
    yield b"]"


def _csv(rows: Sequence[Mapping[str, Any]], *, with_head: bool = True) -> str:
    text = io.StringIO()
    writer = csv.writer(text)
    if rows and with_head:
        writer.writerow(rows[0])
    if rows:
        writer.writerows([_cell(value) for value in row.values()] for row in rows)
    return text.getvalue()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        value = json.dumps(value).decode().strip('"')
    return cells.guarded(value)

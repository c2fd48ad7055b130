"""Bodies of events, on a page and as files."""

from __future__ import annotations

from dataclasses import dataclass

import orjson
from flask import Response

# A longer body is shown in part; all of it can be downloaded.
LONGEST_SHOWN = 16_000


@dataclass(frozen=True, slots=True)
class Shown:
    """A body for a page: indented, and as the bytes that are sent, both cut at LONGEST_SHOWN characters."""

    pretty: str
    raw: str
    size: int
    is_whole: bool


def shown(body: bytes) -> Shown:
    """The body of an event for a page."""
    raw, pretty = body.decode(), orjson.dumps(orjson.loads(body), option=orjson.OPT_INDENT_2).decode()
    return Shown(pretty[:LONGEST_SHOWN], raw[:LONGEST_SHOWN], len(body), len(pretty) <= LONGEST_SHOWN)


def file(event_id: str, body: bytes) -> Response:
    """The body as a file that a browser never shows, whatever is in it."""
    response = Response(body, mimetype="application/octet-stream")
    response.headers["Content-Disposition"] = f'attachment; filename="{event_id}.json"'
    return response

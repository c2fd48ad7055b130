"""Bodies of events and payloads of jobs: JSON on pages, and bodies as files."""

from __future__ import annotations

from dataclasses import dataclass

import orjson
from flask import Response

LONGEST_SHOWN = 16_000  # characters; a page shows only the beginning of a longer body


@dataclass(frozen=True, slots=True)
class Shown:
    """A body for a page: indented and raw, both cut at LONGEST_SHOWN characters."""

    pretty: str
    raw: str
    size: int
    is_whole: bool


def shown(body: bytes) -> Shown:
    """Prepares a JSON body for a page."""
    raw, pretty = body.decode(), orjson.dumps(orjson.loads(body), option=orjson.OPT_INDENT_2).decode()
    return Shown(pretty[:LONGEST_SHOWN], raw[:LONGEST_SHOWN], len(body), len(pretty) <= LONGEST_SHOWN)


def file(event_id: str, body: bytes) -> Response:
    """Sends the body as a download, so that a browser never renders it."""
    response = Response(body, mimetype="application/octet-stream")
    response.headers["Content-Disposition"] = f'attachment; filename="{event_id}.json"'
    return response

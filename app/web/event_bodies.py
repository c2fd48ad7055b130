"""Bodies of events and payloads of jobs: JSON on pages, and bodies as files."""

from __future__ import annotations

from typing import Any

import orjson
from flask import Response

LONGEST_SHOWN = 16_000  # characters; a page shows only the beginning of a longer body


def shown(body: bytes) -> dict[str, Any]:
    """Returns a JSON body for a page, indented as `pretty` and unchanged as `raw`; `size` in bytes."""
    raw, pretty = body.decode(), orjson.dumps(orjson.loads(body), option=orjson.OPT_INDENT_2).decode()
    cut = {"pretty": pretty[:LONGEST_SHOWN], "raw": raw[:LONGEST_SHOWN]}
    return {**cut, "size": len(body), "is_whole": len(pretty) <= LONGEST_SHOWN}


def file(event_id: str, body: bytes) -> Response:
    """Sends the body as a download, so that a browser never renders it."""
    response = Response(body, mimetype="application/octet-stream")
    response.headers["Content-Disposition"] = f'attachment; filename="{event_id}.json"'
    return response

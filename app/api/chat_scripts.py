"""The script of a web chat, which a workspace's pages include: `<script async src=".../chat/<channel>.js"></script>`.

`widget/chat.min.js` is made of the other files there by `python -m tests.widget`.
"""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

from flask import Blueprint, Response, request

from app.api.responses import BareResponse
from app.config import settings
from app.domain import visitors
from app.lib import json

blueprint = Blueprint("chat_scripts", __name__)

# The facts about the channel stand in for `FACTS`, the argument at the end.
_BEFORE, _, _AFTER = (Path(__file__).parent / "widget" / "chat.min.js").read_bytes().rpartition(b"FACTS")


@blueprint.get("/chat/<channel_id>.js")
def show(channel_id: str) -> Response:
    """The script. Raises NotFound."""
    channel = visitors.find_channel(channel_id)
    content = _script(channel.id, channel.name)
    is_compressed = request.accept_encodings["gzip"] > 0
    response = BareResponse(gzip.compress(content, mtime=0) if is_compressed else content, mimetype="text/javascript")
    if is_compressed:
        response.headers["Content-Encoding"] = "gzip"
    response.headers["Vary"] = "Accept-Encoding"
    response.headers["Cache-Control"] = "public, max-age=300"
    response.headers["X-Content-Type-Options"] = "nosniff"
    # Pages that isolate themselves (Cross-Origin-Embedder-Policy) may include it, too.
    response.headers["Cross-Origin-Resource-Policy"] = "cross-origin"
    response.set_etag(hashlib.sha256(content).hexdigest()[:16], weak=True)
    return response.make_conditional(request)  # type: ignore[return-value]


def _script(channel_id: str, name: str) -> bytes:
    facts = {"channel": channel_id, "name": name, "base": settings().base_url, "live": settings().realtime_url}
    return _BEFORE + json.dumps(facts) + _AFTER

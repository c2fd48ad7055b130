"""Serves the script of a web chat: `<script async src=".../chat/<channel>.js"></script>`.

Workspaces' pages include it. `python -m tests.widget` builds `widget/chat.min.js` from the other files there.
"""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path
from typing import Any, NamedTuple

from flask import Blueprint, Response, request

from app.api.responses import BareResponse
from app.channels.web_chat import WebChat
from app.config import settings
from app.database import DatabaseAway, rows
from app.domain.channels import chat_looks, media, visitors
from app.lib import clock, json
from app.lib.caches import Cache

blueprint = Blueprint("chat_scripts", __name__)


class Look(NamedTuple):
    """The facts about a channel that its script contains."""

    name: str
    settings: dict[str, Any]
    timezone: str


_SHOWN = ("greeting", "color", "picture", "opening_hours")
# The facts about channels whose script was requested recently. The bound is in characters.
_LOOKS: Cache[str, Look] = Cache(4_000_000)
# The facts about the channel replace `FACTS`, the argument at the end.
_BEFORE, _, _AFTER = (Path(__file__).parent / "widget" / "chat.min.js").read_bytes().rpartition(b"FACTS")


@blueprint.get("/chat/<channel_id>.js")
def show(channel_id: str) -> Response:
    """Sends the script, for a known channel even without the database.

    Raises NotFound and DatabaseAway.
    """
    content = _script(channel_id, _look_of(channel_id))
    is_compressed = request.accept_encodings["gzip"] > 0
    response = BareResponse(gzip.compress(content, mtime=0) if is_compressed else content, mimetype="text/javascript")
    if is_compressed:
        response.headers["Content-Encoding"] = "gzip"
    response.headers["Vary"] = "Accept-Encoding"
    response.headers["Cache-Control"] = "public, max-age=300"
    response.headers["X-Content-Type-Options"] = "nosniff"
    # Lets pages that isolate themselves (Cross-Origin-Embedder-Policy) include the script, too.
    response.headers["Cross-Origin-Resource-Policy"] = "cross-origin"
    response.set_etag(hashlib.sha256(content).hexdigest()[:16], weak=True)
    return response.make_conditional(request)  # type: ignore[return-value]


def _look_of(channel_id: str) -> Look:
    try:
        channel = visitors.find_channel(channel_id)
        timezone = rows("SELECT timezone FROM workspaces WHERE id = %s", (channel.workspace_id,))[0][0]
    except DatabaseAway:
        known = _LOOKS.get(channel_id)
        if known is None:
            raise
        return known
    shown = {name: value for name, value in channel.settings.items() if name in _SHOWN}
    look = Look(channel.name, shown, timezone)
    _LOOKS.put(channel_id, look, len(str(look)))
    return look


def _script(channel_id: str, look: Look) -> bytes:
    facts = {
        **{"channel": channel_id, "name": look.name, "base": settings().base_url, "live": settings().realtime_url},
        **{"mostCharacters": WebChat.most_characters, "mostBytes": media.MOST_BYTES},
        **chat_looks.facts(look.settings, look.timezone, clock.now()),
    }
    return _BEFORE + json.dumps(facts) + _AFTER

"""Web chats for tests: a channel, and a page of a shop that talks to it."""

from __future__ import annotations

import hashlib
import hmac
from typing import Any

from app.database import rows
from app.domain.channels import channels
from app.lib import ids, json
from app.models.channels import Channel

SHOP = "https://shop.example"
SECRET = "chs_of-the-tests"
KEY = "k" * 32  # what a page makes up


def make_chat(workspace_id: str, *origins: str) -> Channel:
    """A connected web chat, by default one that only SHOP may show."""
    channel_id = ids.new("chn")
    rows(
        "INSERT INTO channels (id, workspace_id, kind, name, state, settings, credentials)"
        " VALUES (%s, %s, 'web_chat', 'Chat', 'connected', %s, %s)",
        (
            *(channel_id, workspace_id, json.dumps({"origins": list(origins) or [SHOP]}).decode()),
            channels.sealed({"secret": SECRET}),
        ),
    )
    return Channel.get_by_id(channel_id)


def signed(user_id: str, secret: str = SECRET) -> dict[str, Any]:
    """What the shop's server makes for its signed-in user."""
    return {"id": user_id, "signature": hmac.new(secret.encode(), user_id.encode(), hashlib.sha256).hexdigest()}

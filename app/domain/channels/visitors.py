"""Visitors of web chats: browsers that wrote messages, each with a token for one channel.

Nothing is stored about a visitor before the first message, or a file for it. The token is derived from a key that the
page makes, so that the first message can be repeated if its answer was lost.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from app.channels.web_chat import WebChat
from app.config import settings
from app.database import rows
from app.domain.channels import channels
from app.errors import Fault, InsufficientScope, Invalid, NotFound
from app.lib import ids, keys, token_format
from app.models.channels import Channel

_KIND = WebChat()
_KEY = re.compile(r"[A-Za-z0-9_-]{32,64}")
_TOKEN = re.compile(r"bhv_[0-9a-f]{64}")
LONGEST_USER = 255


@dataclass(frozen=True, slots=True)
class Visitor:
    """Somebody who writes in a web chat. `id` is also the `external_id` of the contact's identity.

    `peer`: the address of answers. `contact_id`: None until the first message is processed. `user_id`: the signed user,
    if any.
    """

    workspace_id: str
    channel_id: str
    id: str
    contact_id: str | None
    peer: str
    user_id: str | None


def find_channel(channel_id: str) -> Channel:
    """Returns the web chat with that id, in any workspace. Raises NotFound."""
    return channels.find_anywhere(_KIND.name, channel_id)


def is_allowed(origins: list[str], origin: str | None) -> bool:
    """Returns whether a page of `origin` may show a chat with these origins. Bellhop's pages may."""
    own = urlsplit(settings().base_url)
    return origin is not None and (origin in origins or origin == f"{own.scheme}://{own.netloc}")


def is_token(text: str) -> bool:
    """Returns whether the text has the form of a visitor's token."""
    return _TOKEN.fullmatch(text) is not None


def authenticate(token: str) -> Visitor | None:
    """Returns the visitor with that token; None if there is none. Accepts any text."""
    return _find("token_hash", token_format.digest(token)) if is_token(token) else None


def refreshed(visitor: Visitor) -> Visitor:
    """Reads the visitor again. Raises NotFound if the visitor or the channel was deleted."""
    found = _find("visitors.id", visitor.id)
    if found is None:
        raise NotFound
    return found


def issue(channel: Channel, key: str) -> tuple[Visitor, str]:
    """Returns the visitor with this key, created if there is none, and its token. Safe to repeat.

    Raises Invalid for a key of the wrong form, and NotFound if the channel was deleted.
    """
    if not _KEY.fullmatch(key):
        raise Invalid(Fault("/key", "A key is 32 to 64 random characters of A-Z, a-z, 0-9, - and _."))
    visitor_id, token = ids.new("vtr"), _token(channel.id, key)
    rows(
        """
        INSERT INTO visitors (id, workspace_id, channel_id, key_hash, token_hash, peer)
        VALUES (%(id)s, %(workspace_id)s, %(channel_id)s, %(key_hash)s, %(token_hash)s, %(id)s)
        ON CONFLICT (channel_id, key_hash) DO UPDATE SET token_hash = EXCLUDED.token_hash
        """,
        {
            "id": visitor_id,
            "workspace_id": channel.workspace_id,
            "channel_id": channel.id,
            "key_hash": token_format.digest(key),
            "token_hash": token_format.digest(token),
        },
    )
    visitor = authenticate(token)
    if visitor is None:  # the channel has been deleted meanwhile
        raise NotFound
    return visitor, token


def is_known(channel: Channel, user_id: str) -> bool:
    """Returns whether the user has written in this chat, in any browser."""
    return bool(rows("SELECT 1 FROM visitors WHERE channel_id = %s AND user_id = %s LIMIT 1", (channel.id, user_id)))


def check_signature(channel: Channel, user: Mapping[str, Any]) -> str:
    """Returns the user's id if the channel's secret signed it. Otherwise raises InsufficientScope."""
    if not _KIND.is_signed(channels.account_of(channel), user["id"], user["signature"]):
        raise InsufficientScope("The signature is not that of this user by the channel's secret.")
    return str(user["id"])


def delete_expired(limit: int = 500) -> int:
    """Examines up to `limit` visitors a day after their creation; deletes those who never wrote.

    Returns how many were examined. A visitor whose message or file still waits is examined again a day later.
    """
    looked_at = rows(
        """
        WITH expired AS MATERIALIZED (
            SELECT id, workspace_id, channel_id FROM visitors WHERE expires_at < now()
            ORDER BY expires_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED
        ), judged AS MATERIALIZED (
            SELECT expired.id, identity.id IS NOT NULL AS has_contact,
                coalesce(arrival.id, file.id) IS NOT NULL AS is_waiting
            FROM expired LEFT JOIN LATERAL (
                SELECT id FROM identities
                WHERE workspace_id = expired.workspace_id AND address = %(kind)s || expired.id COLLATE "default"
                LIMIT 1
            ) AS identity ON true LEFT JOIN LATERAL (
                SELECT id FROM arrivals
                WHERE sender_key = expired.channel_id || '/' || expired.id AND due_at IS NOT NULL LIMIT 1
            ) AS arrival ON true LEFT JOIN LATERAL (
                SELECT id FROM uploads WHERE visitor_id = expired.id AND message_id IS NULL LIMIT 1
            ) AS file ON true
        ), kept AS (
            UPDATE visitors SET expires_at = CASE WHEN NOT has_contact THEN now() + interval '1 day' END
            FROM judged WHERE visitors.id = judged.id AND (has_contact OR is_waiting)
        ), deleted AS (
            DELETE FROM visitors USING judged WHERE visitors.id = judged.id AND NOT has_contact AND NOT is_waiting
        )
        SELECT id FROM judged
        """,
        {"limit": limit, "kind": f"{_KIND.name}:"},
    )
    return len(looked_at)


def _find(column: str, value: object) -> Visitor | None:
    # Ids have another collation than the index of addresses. Without COLLATE, the index would not be used.
    found = rows(
        f"""
        SELECT visitors.workspace_id, visitors.channel_id, visitors.id, identities.contact_id, peer, user_id
        FROM visitors
        JOIN channels ON channels.id = visitors.channel_id AND channels.deleted_at IS NULL
        LEFT JOIN identities ON identities.workspace_id = visitors.workspace_id
            AND address = %s || visitors.id COLLATE "default"
        WHERE {column} = %s
        """,
        (f"{_KIND.name}:", value),
    )
    return Visitor(*found[0]) if found else None


def _token(channel_id: str, key: str) -> str:
    secret, named = keys.derived(settings().secret_keys[0], "visitors"), f"{channel_id}\n{key}"
    return f"bhv_{hmac.digest(secret, named.encode(), hashlib.sha256).hex()}"

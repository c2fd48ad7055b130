"""Signs, such as who is typing: sent live by Redis and stored nowhere. Any sign may be lost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Literal

import redis
import structlog

from app import bells, metrics
from app.config import settings
from app.lib import json, redis_servers
from app.lib.json import timestamp

log = structlog.get_logger(__name__)

_CHANNEL = "live"
_QUIET_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Sign:
    """A live sign, such as that somebody is typing. It is not sent to its author.

    `author_type` and `author_id` name a member, a contact or a visitor. `channel_id` and `peer` name a visitor who may
    also see the sign, if any. A sign of the kind `admission` is for the `realtime` processes only: they check again
    whether the visitor, token, visit or account in `author_type` and `author_id` may listen.
    """

    kind: Literal["typing", "presence", "admission"]
    workspace_id: str
    author_type: str
    author_id: str
    data: dict[str, Any]
    channel_id: str | None = None
    peer: str | None = None


def typing(
    workspace_id: str, conversation_id: str, author: dict[str, str], channel_id: str | None, peer: str | None
) -> None:
    """Shows that the author (`type` and `id`) is typing. Never waits long, never raises."""
    data = {"conversation_id": conversation_id, "author": author}
    show(Sign("typing", workspace_id, author["type"], author["id"], data, channel_id, peer))


def looking(workspace_id: str, conversation_id: str, author: dict[str, str], until: datetime) -> None:
    """Like `typing`, for an author who views the conversation `until` then. Only members see it."""
    data = {"conversation_id": conversation_id, "author": author, "until": timestamp(until)}
    # With these fields, the sign also serves clients that only want to know who is online.
    there = {"member_ids": [author["id"]] if author["type"] == "member" else [], "online": True}
    show(Sign("presence", workspace_id, author["type"], author["id"], data | there))


def check_admission(who: str, identifier: str) -> None:
    """Has the streams of a `visitor`, `token`, `visit` or `account` checked again now.

    Streams that may no longer listen are ended. Never waits long, never raises. If the sign is lost, the regular check
    ends them within a minute.
    """
    show(Sign("admission", "", who, identifier, {}))


def show(sign: Sign) -> None:
    """Sends the sign to everybody who listens now. Never waits long, never raises."""
    try:
        bells.flags().publish(_CHANNEL, json.dumps(asdict(sign)))
    except redis.RedisError as error:
        metrics.REDIS_AWAY.inc()
        log.info("live.not_shown", kind=sign.kind, error=str(error))


def signs() -> Iterator[Sign | None]:
    """Yields all workspaces' signs, or None after five quiet seconds. Raises redis.RedisError."""
    client = redis_servers.client(settings().redis_url, socket_timeout=2 * _QUIET_SECONDS, socket_connect_timeout=3)
    with client.pubsub(ignore_subscribe_messages=True) as subscription:
        subscription.subscribe(_CHANNEL)
        is_asked = False
        while True:
            message = subscription.get_message(timeout=_QUIET_SECONDS)
            if message is None:
                if is_asked:
                    raise redis.TimeoutError("Redis does not answer.")
                subscription.ping()  # silence does not tell a quiet server from a vanished one
                yield None
            elif message["type"] == "message":
                yield _read(message["data"])
            is_asked = message is None


def _read(said: bytes) -> Sign | None:
    try:
        return Sign(**json.loads(said))
    except (ValueError, TypeError):  # a sign from another version
        return None

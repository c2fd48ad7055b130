"""Viewers: the members who are viewing a conversation now. Kept in Redis only, until they expire."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import redis
import structlog
from marshmallow import fields

from app import bells, bounds, metrics, realtime
from app.domain.conversations.messages import AuthorSchema
from app.lib.schemas import ResponseBody, time
from app.models.conversations import Conversation

log = structlog.get_logger(__name__)

LOOKS_SECONDS = 30
# A viewer who is reported again within this time is not announced again.
SHOWN_EVERY_SECONDS = 5

# The keys are two sorted sets by the millisecond in which a view ends: the viewers of the conversation, and all views
# in the workspace, which are only counted.
_LOOK = """
    local time = redis.call('TIME')
    local now = time[1] * 1000 + math.floor(time[2] / 1000)
    local ends = now + ARGV[3]
    for _, key in ipairs(KEYS) do
        redis.call('ZREMRANGEBYSCORE', key, '-inf', now)
    end
    local known = redis.call('ZSCORE', KEYS[1], ARGV[1])
    if known and ends - known < tonumber(ARGV[4]) then
        return {'known', 0}
    end
    if not known and redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[5]) then
        return {'conversation', 0}
    end
    if not known and redis.call('ZCARD', KEYS[2]) >= tonumber(ARGV[6]) then
        return {'workspace', 0}
    end
    redis.call('ZADD', KEYS[1], ends, ARGV[1])
    redis.call('ZADD', KEYS[2], ends, ARGV[2])
    for _, key in ipairs(KEYS) do
        redis.call('PEXPIRE', key, ARGV[3])
    end
    return {'shown', ends}
"""


def look(conversation: Conversation, author: dict[str, str]) -> None:
    """Shows members that the author (`type`, `id`) is viewing the conversation, for LOOKS_SECONDS.

    Does nothing at the limits of viewers. Needs no lock, never waits long, never raises.
    """
    who = f"{author['type']}:{author['id']}"
    keys = [_key(conversation), f"viewers:{conversation.workspace_id}"]
    limits = {"conversation": bounds.VIEWERS_PER_CONVERSATION, "workspace": bounds.VIEWERS_PER_WORKSPACE}
    numbers = [LOOKS_SECONDS * 1000, SHOWN_EVERY_SECONDS * 1000, *(each.most for each in limits.values())]
    try:
        values: list[str | float] = [who, f"{conversation.id} {who}", *numbers]
        said, ends = bells.flags().register_script(_LOOK)(keys=keys, args=values)
    except redis.RedisError as error:
        metrics.REDIS_AWAY.inc()
        log.info("viewers.not_noted", error=str(error))
        return
    if (bound := limits.get(said.decode())) is not None:
        bound.reached()
    elif ends:
        realtime.looking(conversation.workspace_id, conversation.id, author, _time(ends))


def of(conversation: Conversation) -> list[dict[str, Any]]:
    """Returns the current viewers, in the order in which they expire; none while Redis is away."""
    try:
        seconds, microseconds = bells.flags().time()
        now = seconds * 1000 + microseconds // 1000
        found: Any = bells.flags().zrangebyscore(_key(conversation), f"({now}", "+inf", withscores=True)
    except redis.RedisError as error:
        metrics.REDIS_AWAY.inc()
        log.info("viewers.not_known", error=str(error))
        return []
    named = [(*who.decode().split(":", 1), _time(int(ends))) for who, ends in found]
    return [ViewerSchema.of(None, author={"type": kind, "id": id}, until=until) for kind, id, until in named]


class ViewerSchema(ResponseBody):
    author = fields.Nested(AuthorSchema)
    until = time("When they stop to look at it, unless they say again that they do.")


def _time(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def _key(conversation: Conversation) -> str:
    return f"viewers:{conversation.id}"

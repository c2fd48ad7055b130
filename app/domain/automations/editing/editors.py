"""Editors: records who has an automation open in the editor. Kept only in Redis."""

from __future__ import annotations

import redis
import structlog

from app import bells, metrics

log = structlog.get_logger(__name__)

HERE_SECONDS = 30
MOST_SHOWN = 20


def come(automation_id: str, actor_id: str) -> list[str]:
    """Records the actor for HERE_SECONDS, and returns all current editors, up to MOST_SHOWN.

    Returns [] while Redis is unavailable. Never raises.
    """
    key = f"editors:{automation_id}"
    try:
        client = bells.flags()
        seconds, _ = client.time()
        pipeline = client.pipeline()
        pipeline.zremrangebyscore(key, "-inf", seconds)
        pipeline.zadd(key, {actor_id: seconds + HERE_SECONDS})
        pipeline.zremrangebyrank(key, 0, -MOST_SHOWN - 1)
        pipeline.expire(key, HERE_SECONDS)
        pipeline.zrange(key, 0, -1)
        return [who.decode() for who in pipeline.execute()[-1]]
    except redis.RedisError as error:
        metrics.REDIS_AWAY.inc()
        log.info("editors.not_known", error=str(error))
        return []

"""Signs: a thread that receives signs from Redis, such as typing, and passes them to the hub."""

from __future__ import annotations

import time

import redis
import structlog

from app import metrics, realtime
from app.lib import vitals
from app.live.hub import Hub

log = structlog.get_logger(__name__)

PAUSE_SECONDS = 1.0


def start(hub: Hub) -> None:
    """Starts the thread, which runs as long as the process. While Redis is away, signs are lost."""
    vitals.start(_pass_on, "signs", hub)


def _pass_on(hub: Hub) -> None:
    while True:
        try:
            for sign in realtime.signs():
                if sign is not None:
                    hub.hear(sign)
        except redis.RedisError as error:
            metrics.REDIS_AWAY.inc()
            log.info("live.redis_away", error=str(error))
        time.sleep(PAUSE_SECONDS)

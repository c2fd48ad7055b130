"""Signs: a thread that hears from Redis who is typing, and passes it on to the reader."""

from __future__ import annotations

import threading
import time

import redis
import structlog

from app import metrics, realtime
from app.live.reader import Reader

log = structlog.get_logger(__name__)

PAUSE_SECONDS = 1.0


def start(reader: Reader) -> None:
    """Passes signs on for as long as the process lives; none while Redis is away."""
    threading.Thread(target=_pass_on, args=(reader,), name="signs", daemon=True).start()


def _pass_on(reader: Reader) -> None:
    while True:
        try:
            for sign in realtime.signs():
                if sign is not None:
                    reader.show(sign)
        except redis.RedisError as error:
            metrics.REDIS_AWAY.inc()
            log.info("live.redis_away", error=str(error))
        time.sleep(PAUSE_SECONDS)

"""Process presence: each process renews a key in Redis every few seconds, and the key expires when it stops."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections import Counter

import redis
import structlog

from app import bells

log = structlog.get_logger(__name__)

# The long-running process types of the Procfile; a test compares them.
TYPES = ("web", "writes", "automations", "deliveries", "slow-deliveries", "retries", "scheduler")
SAID_EVERY_SECONDS = 5
FORGOTTEN_AFTER_SECONDS = 15
_KEY = "process:"


def announce(process_type: str) -> None:
    """Starts a thread that announces this process for as long as it lives."""
    key = f"{_KEY}{process_type}:{socket.gethostname()}:{os.getpid()}"
    threading.Thread(target=_keep_saying, args=(key,), name="presence", daemon=True).start()


def present() -> Counter[str]:
    """How many processes of each type have been heard from recently. Raises redis.RedisError."""
    return Counter(key.decode().split(":")[1] for key in bells.flags().scan_iter(f"{_KEY}*", count=1000))


def _keep_saying(key: str) -> None:
    while True:
        try:
            bells.flags().set(key, b"1", ex=FORGOTTEN_AFTER_SECONDS)
        except redis.RedisError as error:
            log.info("presence.not_said", error=str(error))
        time.sleep(SAID_EVERY_SECONDS)

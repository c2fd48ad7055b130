"""The registry of processes: each process renews a key in Redis, which expires after it stops."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import redis
import structlog

from app import bells, metrics
from app.lib import clock, json, versions, vitals

log = structlog.get_logger(__name__)

# The long-running process types of the Procfile; a test compares them.
TYPES = (
    "web",
    "realtime",
    "writes",
    "automations",
    "deliveries",
    "slow-deliveries",
    "retries",
    "messages",
    "scheduler",
)
SAID_EVERY_SECONDS = 5
FORGOTTEN_AFTER_SECONDS = 15
_KEY = "process:"
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")

# Facts about this process that `_say` adds to what it announces; `tell` sets them.
_facts: dict[str, Any] = {}


@dataclass(frozen=True, slots=True)
class Process:
    """A process heard from recently. A field is None if that process's version does not send it."""

    type: str
    host: str
    pid: int
    version: str | None = None
    started_at: datetime | None = None
    rss_bytes: int | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)


def announce(process_type: str) -> None:
    """Starts a thread that announces this process every SAID_EVERY_SECONDS for as long as it lives."""
    said = {"version": versions.running(), "started_at": clock.now().isoformat()}
    metrics.BUILD.labels(versions.running()).set(1)
    vitals.start(_keep_saying, "presence", process_type, said)


def tell(name: str, fact: object) -> None:
    """Adds or replaces a fact, serializable as JSON, in the announcements of this process."""
    _facts[name] = fact


def processes() -> list[Process]:
    """Returns the processes heard from recently, in the order of TYPES. Raises redis.RedisError."""
    keys = [key.decode() for key in bells.flags().scan_iter(f"{_KEY}*", count=1000)]
    values = bells.flags().mget(keys) if keys else []
    # A key that expired between the two reads has no value: its process has stopped.
    found = [_process(key, value) for key, value in zip(keys, values, strict=True) if value is not None]
    places = {process_type: place for place, process_type in enumerate(TYPES)}
    return sorted(found, key=lambda each: (places.get(each.type, len(TYPES)), each.host, each.pid))


def _process(key: str, value: bytes | str) -> Process:
    _, process_type, rest = key.split(":", 2)
    host, _, pid = rest.rpartition(":")
    said = json.loads(value)
    if not isinstance(said, dict):  # a process of an older version announces no details
        return Process(process_type, host, int(pid))
    started_at = datetime.fromisoformat(said["started_at"]) if "started_at" in said else None
    facts = said.get("facts", {})
    return Process(process_type, host, int(pid), said.get("version"), started_at, said.get("rss_bytes"), facts)


def _keep_saying(process_type: str, said: Mapping[str, Any]) -> None:
    while True:
        try:
            _say(process_type, said)
        except redis.RedisError as error:
            log.info("presence.not_said", error=str(error))
        time.sleep(SAID_EVERY_SECONDS)


def _say(process_type: str, said: Mapping[str, Any]) -> None:
    key = f"{_KEY}{process_type}:{socket.gethostname()}:{os.getpid()}"
    value = json.dumps({**said, "rss_bytes": _rss_bytes(), "facts": dict(_facts)})
    bells.flags().set(key, value, ex=FORGOTTEN_AFTER_SECONDS)


def _rss_bytes() -> int | None:
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE_BYTES
    except OSError:  # not Linux
        return None

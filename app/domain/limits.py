"""The rate limit: a bucket of requests for each token, in Redis, by the clock of Redis."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache

import redis
import structlog

from app import bells, metrics
from app.config import settings

log = structlog.get_logger(__name__)

# A process takes for a token in steady use several requests at once, and gives back what it has not used by then.
SHARE_SECONDS = 0.25
MOST_AT_ONCE = 200
# After Redis has failed to answer, one request in so many seconds of a process asks it, and the others pass.
AWAY_SECONDS = 2.0
_MOST_REMEMBERED = 10_000

# A bucket is full at the quota and gains the quota in a minute. Its level is counted in parts of a request, as many as
# a minute has microseconds, so that all numbers are whole: the largest quota makes them 6e15, and doubles have 9e15.
# Nobody near the end of a bucket takes more than a hundredth of what is left, so that there it is exact.
_TAKE = """
    local quota, wanted, unused = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
    local request = 60000000
    local full = quota * request
    local time = redis.call('TIME')
    local now = time[1] * 1000000 + time[2]
    local level = full
    local kept = redis.call('GET', KEYS[1])
    if kept then
        local then_level, at = string.match(kept, '(%d+) (%d+)')
        local passed = math.min(math.max(now - at, 0), request)
        level = math.min(full, then_level + passed * quota + unused * request)
    end
    local available = math.floor(level / request)
    if available == 0 then
        return {0, 0, math.ceil((request - level) / quota)}
    end
    local taken = math.min(wanted, math.max(1, math.floor(available / 100)))
    level = level - taken * request
    local expires = math.ceil((full - level) / quota / 1000)
    redis.call('SET', KEYS[1], string.format('%.0f %.0f', level, now), 'PX', expires)
    return {taken, available - taken, math.ceil((request - level % request) / quota)}
"""


@dataclass(frozen=True, slots=True)
class Standing:
    """How a token stands after a request: how many more it may make, and in how many seconds one is added."""

    is_within: bool
    quota: int
    left: int
    seconds: int


@dataclass(slots=True)
class _Share:
    """What this process has taken from a bucket: for each request how many more there are after it, the last first.

    What is here after `ends` is not used any more. Taking one needs no lock, for at that threads would queue up: a
    deque's `pop` is atomic.
    """

    unused: deque[int] = field(default_factory=deque)
    ends: float = 0.0
    seconds: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, quota: int) -> Standing | None:
        """None where nothing is left of it."""
        if time.monotonic() < self.ends:
            with suppress(IndexError):
                return Standing(True, quota, self.unused.pop(), self.seconds)
        return None

    def empty(self) -> int:
        """Takes all, and says how many they were: exactly, while others may be taking some."""
        taken = 0
        with suppress(IndexError):
            while True:
                self.unused.pop()
                taken += 1
        return taken


def count_request(token_id: str) -> Standing | None:
    """Takes a request from the token's bucket. None where there is no limit, or Redis does not answer: it may pass."""
    quota = settings().rate_limit_per_minute
    return _limiter().take(token_id, quota) if quota else None


class Limiter:
    """One process's hand in all buckets. It waits for Redis as long as `bells.flags` does, and not again at once."""

    def __init__(self) -> None:
        self._shares: dict[str, _Share] = {}
        self._away_until = 0.0
        self._script = bells.flags().register_script(_TAKE)

    def take(self, token_id: str, quota: int) -> Standing | None:
        """Takes a request from the token's bucket. None where Redis does not answer."""
        share = self._share(token_id)
        return share.take(quota) or self._ask_for_all(share, token_id, quota)

    def _ask_for_all(self, share: _Share, token_id: str, quota: int) -> Standing | None:
        with share.lock:  # one thread asks for all that wait here
            if standing := share.take(quota):
                return standing
            now = time.monotonic()
            if now < self._away_until:
                return None
            if self._away_until:
                # This one asks whether Redis is back; other tokens' do not wait with it.
                self._away_until = now + AWAY_SECONDS
            wanted = MOST_AT_ONCE if now < share.ends else 1
            try:
                taken, left, microseconds = self._ask(token_id, quota, wanted, share.empty())
            except redis.RedisError as error:
                self._note_away(error)
                return None
            share.ends, share.seconds = now + SHARE_SECONDS, math.ceil(microseconds / 1_000_000)
            share.unused.extend(range(left, left + taken - 1))
            return Standing(taken > 0, quota, left + max(0, taken - 1), share.seconds)

    def _share(self, token_id: str) -> _Share:
        if len(self._shares) > _MOST_REMEMBERED:
            self._shares.clear()
        return self._shares.get(token_id) or self._shares.setdefault(token_id, _Share())

    def _ask(self, token_id: str, quota: int, wanted: int, unused: int) -> list[int]:
        answer: list[int] = self._script(keys=[f"limit:{token_id}"], args=[quota, wanted, unused])
        self._away_until = 0.0
        return answer

    def _note_away(self, error: redis.RedisError) -> None:
        metrics.REDIS_AWAY.inc()
        self._away_until = time.monotonic() + AWAY_SECONDS
        log.warning("limits.not_checked", seconds=AWAY_SECONDS, error=str(error))


@cache
def _limiter() -> Limiter:
    return Limiter()

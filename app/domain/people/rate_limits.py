"""The API's rate limit: a token bucket for each API token, kept in Redis by its clock.

Other limits on what one caller may have are bounds (`app/bounds.py`). Plans have no limits (`app/domain/billing`).
"""

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

# For a token in steady use, a process takes several requests from the bucket at once, and returns the unused requests
# after this time.
SHARE_SECONDS = 0.25
MOST_AT_ONCE = 200
# If Redis fails to answer, each process asks again once in this time, and lets all other requests through.
AWAY_SECONDS = 2.0
_MOST_REMEMBERED = 10_000

# A bucket holds the quota, and refills in a minute. Levels are in 60,000,000ths of a request, one for each microsecond
# of a minute, so that all numbers are integers: at most 6e15, and doubles are exact up to 9e15. A process takes at most
# a hundredth of what is left, so a nearly empty bucket is exact.
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
    """A bucket after a request: how many requests are left, and the seconds until one is added."""

    is_within: bool
    quota: int
    left: int
    seconds: int


@dataclass(slots=True)
class _Share:
    """The requests that this process took from a bucket, and may use until `ends`.

    `unused`: for each request, how many remain in the bucket after it, last first. Taking one needs no lock, which
    threads would queue for: `deque.pop` is atomic.
    """

    unused: deque[int] = field(default_factory=deque)
    ends: float = 0.0
    seconds: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, quota: int) -> Standing | None:
        if time.monotonic() < self.ends:
            with suppress(IndexError):
                return Standing(True, quota, self.unused.pop(), self.seconds)
        return None

    def empty(self) -> int:
        """Takes all requests that are left; returns how many. Exact, even if other threads take some."""
        taken = 0
        with suppress(IndexError):
            while True:
                self.unused.pop()
                taken += 1
        return taken


def count_request(token_id: str) -> Standing | None:
    """Takes a request from the token's bucket; None if there is no limit or Redis does not answer."""
    quota = settings().rate_limit_per_minute
    return _limiter().take(token_id, quota) if quota else None


def count(name: str, per_minute: int) -> Standing | None:
    """Takes a request from the named bucket, which holds `per_minute`; None if Redis does not answer."""
    return _limiter().take(name, per_minute)


class Limiter:
    """A process's shares in all buckets. After Redis has failed, does not ask it for AWAY_SECONDS."""

    def __init__(self) -> None:
        self._shares: dict[str, _Share] = {}
        self._away_until = 0.0
        self._script = bells.flags().register_script(_TAKE)

    def take(self, token_id: str, quota: int) -> Standing | None:
        """Takes a request from the token's bucket; None if Redis does not answer."""
        share = self._share(token_id)
        return share.take(quota) or self._ask_for_all(share, token_id, quota)

    def _ask_for_all(self, share: _Share, token_id: str, quota: int) -> Standing | None:
        with share.lock:  # one thread asks Redis for all that wait
            if standing := share.take(quota):
                return standing
            now = time.monotonic()
            if now < self._away_until:
                return None
            if self._away_until:
                # This request checks whether Redis is back. Requests of other tokens need not wait for it.
                self._away_until = now + AWAY_SECONDS
            wanted = MOST_AT_ONCE if now < share.ends else 1
            try:
                arguments = [quota, wanted, share.empty()]
                taken, left, microseconds = self._script(keys=[f"limit:{token_id}"], args=arguments)
            except redis.RedisError as error:
                metrics.REDIS_AWAY.inc()
                self._away_until = time.monotonic() + AWAY_SECONDS
                log.warning("rate_limits.not_checked", seconds=AWAY_SECONDS, error=str(error))
                return None
            self._away_until = 0.0
            share.ends, share.seconds = now + SHARE_SECONDS, math.ceil(microseconds / 1_000_000)
            share.unused.extend(range(left, left + taken - 1))
            return Standing(taken > 0, quota, left + max(0, taken - 1), share.seconds)

    def _share(self, token_id: str) -> _Share:
        if len(self._shares) > _MOST_REMEMBERED:
            self._shares.clear()
        return self._shares.get(token_id) or self._shares.setdefault(token_id, _Share())


@cache
def _limiter() -> Limiter:
    return Limiter()

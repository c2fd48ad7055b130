from __future__ import annotations

import time
from collections.abc import Callable

import pytest
import redis

from app import bells
from app.config import settings
from app.domain.people import rate_limits
from app.domain.people.rate_limits import Limiter, Standing
from tests.cast import in_threads, until
from tests.conftest import Servers

pytestmark = pytest.mark.usefixtures("empty")

TOKEN, OTHER = "tok_ours", "tok_theirs"


@pytest.fixture
def limiter() -> Limiter:
    return Limiter()


def take(limiter: Limiter, quota: int, token: str = TOKEN) -> Standing:
    standing = limiter.take(token, quota)
    assert standing is not None
    return standing


def leave(requests: float, seconds_ago: float = 0) -> None:
    """Makes the bucket hold so many requests, so long ago, by the clock of Redis."""
    seconds, microseconds = bells.flags().time()
    at = seconds * 1_000_000 + microseconds - int(seconds_ago * 1_000_000)
    bells.flags().set(f"limit:{TOKEN}", f"{int(requests * 60_000_000)} {at}")


def let_pass(seconds: float) -> None:
    """Makes the bucket as old as it would be after so long."""
    level, at = bells.flags().get(f"limit:{TOKEN}").decode().split()
    bells.flags().set(f"limit:{TOKEN}", f"{level} {int(at) - int(seconds * 1_000_000)}")


def asked() -> int:
    """How often Redis was asked."""
    return int(bells.flags().info("commandstats").get("cmdstat_evalsha", {}).get("calls", 0))


def test_a_bucket_is_full_at_first_and_counts_down(limiter: Limiter) -> None:
    assert [take(limiter, 6).left for _ in range(6)] == [5, 4, 3, 2, 1, 0]


def test_what_is_more_than_the_quota_is_refused_until_one_is_added(limiter: Limiter) -> None:
    assert all(take(limiter, 6).is_within for _ in range(6))

    refused = take(limiter, 6)

    assert (refused.is_within, refused.left) == (False, 0)
    assert 1 <= refused.seconds <= 10


def test_a_refusal_costs_nothing(limiter: Limiter) -> None:
    leave(0.5)
    assert not take(limiter, 1).is_within
    assert not take(limiter, 1).is_within

    let_pass(30)

    assert take(limiter, 1).is_within


@pytest.mark.parametrize(("quota", "seconds"), [(1, 60), (2, 30), (7, 9), (60, 1), (6000, 1), (100_000_000, 1)])
def test_the_time_until_one_is_added_is_that_of_the_quota(limiter: Limiter, quota: int, seconds: int) -> None:
    assert take(limiter, quota).seconds == seconds


@pytest.mark.parametrize("quota", [1, 3, 7, 59, 997])
def test_every_quota_can_be_used_in_full_and_no_more(limiter: Limiter, quota: int) -> None:
    began = time.monotonic()
    within = 0
    while take(limiter, quota).is_within:
        within += 1

    assert quota <= within <= quota + (time.monotonic() - began) * quota / 60 + 1


def test_the_largest_quota_is_counted_to_the_one(limiter: Limiter) -> None:
    assert take(limiter, 100_000_000).left == 99_999_999


def test_waiting_for_the_told_time_is_enough(limiter: Limiter) -> None:
    leave(0, seconds_ago=12)
    refused = take(limiter, 2)
    assert not refused.is_within

    let_pass(refused.seconds)

    assert take(limiter, 2).is_within


def test_a_bucket_fills_by_the_clock_of_redis(limiter: Limiter) -> None:
    leave(0, seconds_ago=50)

    assert take(limiter, 6).left == 4


def test_a_bucket_is_never_fuller_than_full(limiter: Limiter) -> None:
    leave(50, seconds_ago=1000)

    assert take(limiter, 60).left == 59


def test_a_clock_that_goes_back_takes_nothing_away(limiter: Limiter) -> None:
    leave(30, seconds_ago=-1000)

    assert take(limiter, 60).left == 29


def test_every_token_has_its_own_bucket(limiter: Limiter) -> None:
    while take(limiter, 6).is_within:
        pass

    assert take(limiter, 6, OTHER).left == 5


def test_a_bucket_is_forgotten_when_it_is_full_again(limiter: Limiter) -> None:
    take(limiter, 600)

    until(lambda: not bells.flags().exists(f"limit:{TOKEN}"))


def test_an_empty_bucket_is_kept_for_the_minute_it_takes_to_fill(limiter: Limiter) -> None:
    while take(limiter, 6).is_within:
        pass

    assert 50_000 < bells.flags().pttl(f"limit:{TOKEN}") <= 60_000


def test_a_request_is_one_call(limiter: Limiter) -> None:
    take(limiter, 6)
    before = asked()

    take(limiter, 6)

    assert asked() == before + 1


def test_after_redis_has_lost_everything_limits_begin_anew(limiter: Limiter) -> None:
    while take(limiter, 6).is_within:
        pass

    bells.flags().flushall()
    bells.flags().script_flush()

    assert take(limiter, 6).left == 5


# Several at once


def test_a_token_in_steady_use_is_not_asked_for_each_time(limiter: Limiter) -> None:
    before = asked()

    assert all(take(limiter, 100_000).is_within for _ in range(1000))

    assert asked() - before < 300


def test_what_is_left_is_told_for_each_request_all_the_same(limiter: Limiter) -> None:
    began = time.monotonic()

    lefts = [take(limiter, 2000).left for _ in range(100)]

    assert lefts[:3] != [lefts[0]] * 3
    assert 1900 <= lefts[-1] <= 1900 + (time.monotonic() - began) * 2000 / 60 + 1


def test_near_the_end_one_is_taken_at_a_time(limiter: Limiter) -> None:
    take(limiter, 6, OTHER)  # Redis knows the script
    leave(100)
    before = asked()

    assert sum(take(limiter, 100).is_within for _ in range(50)) == 50

    assert asked() - before == 50


def test_what_was_taken_and_not_used_is_given_back(limiter: Limiter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limits, "SHARE_SECONDS", 60)
    take(limiter, 6000)
    take(limiter, 6000)
    [share] = limiter._shares.values()
    assert len(share.unused) > 10
    share.ends = 0

    assert take(limiter, 6000).left > 6000 - 10


def test_processes_share_a_bucket_and_together_stay_within_it() -> None:
    began, quota = time.monotonic(), 2000

    def use_up(limiter: Limiter) -> int:
        within = 0
        while take(limiter, quota).is_within:
            within += 1
        return within

    processes = [Limiter(), Limiter()]
    within = sum(in_threads([lambda limiter=limiter: use_up(limiter) for limiter in processes for _ in range(4)]))

    seconds = time.monotonic() - began
    assert quota <= within + sum(len(share.unused) for each in processes for share in each._shares.values())
    assert within <= quota + seconds * quota / 60 + 1


# Redis away


def test_a_full_redis_limits_nobody(limiter: Limiter, redis_full: None) -> None:
    assert limiter.take(TOKEN, 1) is None


@pytest.fixture
def failing(limiter: Limiter, monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Makes the limiter's calls fail; returns how many there were."""
    calls: list[object] = []

    def fail(**call: object) -> None:
        calls.append(call)
        raise redis.TimeoutError("too slow")

    monkeypatch.setattr(limiter, "_script", fail)
    monkeypatch.setattr(rate_limits, "AWAY_SECONDS", 60.0)  # however busy the machine is
    return lambda: len(calls)


def test_without_redis_requests_are_not_counted(limiter: Limiter, servers: Servers) -> None:
    servers.redis.kill()
    try:
        assert limiter.take(TOKEN, 6) is None
    finally:
        servers.redis.start()

    until(lambda: limiter.take(TOKEN, 6))


def test_a_redis_that_hangs_is_waited_for_once(limiter: Limiter, servers: Servers) -> None:
    take(limiter, 6)
    servers.redis.freeze()
    try:
        began = time.monotonic()
        assert [limiter.take(TOKEN, 6) for _ in range(200)] == [None] * 200
        assert time.monotonic() - began < 10
    finally:
        servers.redis.thaw()

    until(lambda: limiter.take(TOKEN, 6))


def test_after_a_failure_nobody_asks_for_a_while(limiter: Limiter, failing: Callable[[], int]) -> None:
    assert [limiter.take(TOKEN, 6), limiter.take(OTHER, 6), limiter.take(TOKEN, 6)] == [None] * 3

    assert failing() == 1


def test_then_one_asks_and_the_others_do_not_wait_with_it(
    limiter: Limiter, failing: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    limiter.take(TOKEN, 6)
    moved = time.monotonic() + rate_limits.AWAY_SECONDS + 1
    monkeypatch.setattr(time, "monotonic", lambda: moved)

    assert [limiter.take(TOKEN, 6), limiter.take(TOKEN, 6), limiter.take(OTHER, 6)] == [None] * 3

    assert failing() == 2


def test_a_limit_of_0_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RATE_LIMIT", "0")
    settings.cache_clear()
    try:
        assert rate_limits.count_request(TOKEN) is None
    finally:
        monkeypatch.undo()
        settings.cache_clear()
    assert bells.flags().keys("limit:*") == []

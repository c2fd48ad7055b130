from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Set
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from app import bells
from app.bells import Bell, Ringer
from tests.cast import in_threads, until
from tests.conftest import REDIS_SECONDS, Servers

pytestmark = pytest.mark.usefixtures("empty")


@pytest.fixture(autouse=True)
def as_long_as_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """No bell may ring again within a test, however busy the machine is."""
    monkeypatch.setattr(bells, "RINGING_SECONDS", 60)


def flush() -> None:
    bells.flush(20)


def rung() -> int:
    """How many bells are on the queue."""
    flush()
    return int(bells.flags().llen("dramatiq:writes"))


@pytest.fixture
def redis_away(servers: Servers) -> Iterator[None]:
    servers.redis.kill()
    yield
    servers.redis.start()


@pytest.fixture
def redis_hanging(servers: Servers) -> Iterator[None]:
    servers.redis.freeze()
    yield
    servers.redis.thaw()


def test_a_bell_is_a_message_that_names_the_owner_alone() -> None:
    bells.ring("writes", "ws_1")
    flush()

    [message] = bells.flags().hvals("dramatiq:writes.msgs")

    assert b'"args":["ws_1"]' in message
    assert b'"actor_name":"writes"' in message


def test_a_bell_that_is_ringing_is_not_rung_again() -> None:
    for _ in range(5):
        bells.ring("writes", "ws_1")
        flush()

    assert rung() == 1


def later(queue: str) -> list[dict[str, Any]]:
    """The bells that wait for their time there."""
    flush()
    return [json.loads(message) for message in bells.flags().hvals(f"dramatiq:{queue}.DQ.msgs")]


def test_a_bell_for_later_waits_in_the_queue_of_its_delay() -> None:
    asked_at = time.time()
    bells.ring_later("deliveries-retry-60s", 60)

    [message] = later("deliveries-retry-60s")

    assert message["args"] == []
    assert 60 <= message["options"]["eta"] / 1000 - asked_at < 70


def test_bells_for_about_the_same_time_are_one() -> None:
    began = time.time()
    for _ in range(20):
        bells.ring_later("deliveries-retry-60s", 60)
        flush()
    quarters = math.ceil((time.time() - began) * 4) + 1
    bells.ring_later("deliveries-retry-300s", 300)

    assert len(later("deliveries-retry-300s")) == 1
    assert 1 <= len(later("deliveries-retry-60s")) <= quarters


@pytest.mark.parametrize(("number", "messages"), [(10, 3), (480, 16)])
def test_bells_that_may_share_a_message_leave_some_for_other_workers(number: int, messages: int) -> None:
    names = [f"whe_{each}" for each in range(number)]
    with bells._ringer()._changed:  # so that none rings before all are told
        for name in names:
            bells.ring("deliveries", name, shared=True)
    flush()

    owners = [json.loads(message)["args"] for message in bells.flags().hvals("dramatiq:deliveries.msgs")]
    assert sorted(owner for each in owners for owner in each) == sorted(names)
    assert len(owners) == messages


def test_what_rings_unheard_is_asked_for_later_and_what_is_new_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[set[str]] = []
    ring_all = Ringer._ring_all

    def listening(ringer: Ringer, those: Set[Bell]) -> Set[Bell]:
        asked.append({bell.owner for bell in those})
        return ring_all(ringer, those)

    monkeypatch.setattr(Ringer, "_ring_all", listening)
    monkeypatch.setattr(bells, "MOST_GATHERING_SECONDS", 60)
    monkeypatch.setattr(bells, "GATHERING_SECONDS", 60)
    monkeypatch.setattr(bells, "time", SimpleNamespace(time=time.time, sleep=lambda _: None))
    for number in range(2):
        bells.ring("writes", "ws_1")
        until(lambda enough=number + 1: len(asked) >= enough)

    bells.ring("writes", "ws_1")
    time.sleep(0.1)
    assert asked == [{"ws_1"}, {"ws_1"}]

    bells.ring("writes", "ws_2")
    until(lambda: bells.flags().exists("bell:writes:ws_2"))
    assert asked == [{"ws_1"}, {"ws_1"}, {"ws_1", "ws_2"}]


def test_those_that_were_heard_together_ring_again() -> None:
    for number in range(3):
        bells.ring("deliveries", f"whe_{number}", shared=True)
    flush()

    bells.hear("deliveries", ["whe_0", "whe_1"])

    assert [bells.flags().exists(f"bell:deliveries:whe_{number}") for number in range(3)] == [0, 0, 1]


def test_each_owner_has_a_bell_of_its_own() -> None:
    bells.ring("writes", "ws_1")
    bells.ring("writes", "ws_2")

    assert rung() == 2


def test_each_queue_has_a_bell_of_its_own() -> None:
    bells.ring("writes", "ws_1")
    bells.ring("deliveries", "ws_1")

    assert rung() == 1
    assert bells.flags().llen("dramatiq:deliveries") == 1


def test_a_bell_rings_again_once_it_was_heard() -> None:
    bells.ring("writes", "ws_1")
    flush()

    bells.hear("writes", ["ws_1"])
    bells.ring("writes", "ws_1")

    assert rung() == 2


def test_a_bell_that_nobody_hears_may_ring_again_after_seconds() -> None:
    bells.ring("writes", "ws_1")
    flush()

    left = bells.flags().pttl("bell:writes:ws_1")

    assert 0 < left <= bells.RINGING_SECONDS * 1000


def test_ringing_from_many_threads_rings_once() -> None:
    in_threads([lambda: bells.ring("writes", "ws_1")] * 20)

    assert rung() == 1


def test_what_was_never_rung_can_be_heard() -> None:
    bells.hear("writes", ["ws_1"])

    assert rung() == 0


def test_ringing_raises_nothing_while_redis_is_away(redis_away: None) -> None:
    for number in range(100):
        bells.ring("writes", f"ws_{number}")


def test_ringing_waits_for_no_redis_that_hangs(redis_hanging: None) -> None:
    began = time.monotonic()

    for number in range(100):
        bells.ring("writes", f"ws_{number}")

    assert time.monotonic() - began < REDIS_SECONDS


def test_a_bell_that_could_not_ring_is_logged_and_forgotten(redis_away: None) -> None:
    with capture_logs() as lines:
        bells.ring("writes", "ws_1")
        until(lambda: [line for line in lines if line["event"] == "bells.lost"])

    [line] = [line for line in lines if line["event"] == "bells.lost"]
    assert line["bells"] == 1


def test_hearing_raises_nothing_while_redis_is_away(redis_away: None) -> None:
    with capture_logs() as lines:
        bells.hear("writes", ["ws_1"])

    assert [line["event"] for line in lines] == ["bell.not_cleared"]


def test_bells_ring_again_when_redis_is_back(servers: Servers) -> None:
    servers.redis.kill()
    with capture_logs() as lines:
        bells.ring("writes", "ws_1")
        until(lambda: lines)
    servers.redis.start()

    bells.ring("writes", "ws_1")

    assert rung() == 1


def test_a_broker_that_answers_is_pinged() -> None:
    bells.ping()


def test_a_broker_that_is_away_is_told(redis_away: None) -> None:
    with pytest.raises((bells.redis.RedisError, ConnectionError)):
        bells.ping()

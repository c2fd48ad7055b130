from __future__ import annotations

import json
import time
from collections.abc import Iterator, Set
from types import SimpleNamespace
from typing import Any

import pytest
from dramatiq import Message
from dramatiq.brokers.rabbitmq import RabbitmqBroker
from pika.exceptions import AMQPConnectionError
from structlog.testing import capture_logs

from app import bells
from app.bells import Bell, Ringer, Turn, brokers
from tests.cast import in_threads, rung_on, until
from tests.conftest import REDIS_SECONDS, Servers

pytestmark = pytest.mark.usefixtures("empty")


@pytest.fixture(autouse=True)
def as_long_as_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """No bell may ring again within a test, however busy the machine is."""
    monkeypatch.setattr(bells, "RINGING_SECONDS", 60)


QUEUE = "dramatiq:writes"


@pytest.fixture
def briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bell may be lost as soon as it is not the same millisecond any more."""
    monkeypatch.setattr(bells, "RINGING_SECONDS", 0)


def flush() -> None:
    bells.flush(20)


def pass_by() -> None:
    """Some milliseconds, by the clock of Redis."""
    began = bells.flags().time()
    until(lambda: bells.flags().time() > (began[0], began[1] + 5_000))


def rung_at(owner: str) -> int:
    return int(bells.flags().get(Bell("writes", owner).flag) or 0)


def rung() -> int:
    """How many bells are on the queue."""
    return len(rung_on("writes"))


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


@pytest.mark.parametrize(("number", "messages"), [(10, 3), (400, 25)])
@pytest.mark.parametrize("queue", ["writes", "deliveries"])
def test_bells_share_messages_and_leave_some_for_other_workers(queue: str, number: int, messages: int) -> None:
    names = [f"whe_{each}" for each in range(number)]
    with bells._ringer()._changed:  # so that none rings before all are told
        for name in names:
            bells.ring(queue, name)
    flush()

    owners = [json.loads(message)["args"] for message in bells.flags().hvals(f"dramatiq:{queue}.msgs")]
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
        bells.ring("deliveries", f"whe_{number}")
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


def test_a_bell_that_no_worker_has_heard_is_not_rung_again(briefly: None) -> None:
    for _ in range(5):
        bells.ring("writes", "ws_1")
        flush()
        pass_by()

    assert rung() == 1


def test_a_bell_whose_queue_was_deleted_rings_again(briefly: None) -> None:
    bells.ring("writes", "ws_1")
    flush()
    bells.flags().delete(QUEUE)
    pass_by()

    bells.ring("writes", "ws_1")

    assert rung() == 1


def test_a_bell_that_was_lost_among_others_rings_again_when_workers_have_come_past_it(briefly: None) -> None:
    bells.ring("writes", "ws_lost")
    flush()
    bells.flags().delete(QUEUE)
    pass_by()
    bells.ring("writes", "ws_other")
    flush()
    at = rung_at("ws_other")

    bells.ring("writes", "ws_lost")
    assert rung() == 1

    bells.take_up("writes", at)
    bells.ring("writes", "ws_lost")
    bells.ring("writes", "ws_other")
    assert rung() == 2


def test_a_bell_that_a_worker_took_up_and_died_of_rings_again(briefly: None) -> None:
    bells.ring("writes", "ws_1")
    flush()
    consumer = brokers.sending_broker().consume("writes")
    assert next(consumer)
    assert rung() == 0
    pass_by()

    bells.ring("writes", "ws_1")

    assert rung() == 1


def test_a_bell_that_rang_just_now_is_not_lost_though_its_queue_is_empty() -> None:
    bells.ring("writes", "ws_1")
    flush()
    bells.flags().delete(QUEUE)

    bells.ring("writes", "ws_1")

    assert rung() == 0


def test_bells_ring_again_after_redis_lost_everything() -> None:
    bells.ring("writes", "ws_1")
    flush()
    bells.flags().flushall()

    bells.ring("writes", "ws_1")

    assert rung() == 1


def test_two_processes_ring_the_same_bell_once() -> None:
    ringers = [Ringer(), Ringer()]
    for each in ringers:
        each.ring(Bell("writes", "ws_1"))
    for each in ringers:
        each.flush(20)

    assert rung() == 1


def test_two_processes_ring_the_same_lost_bell_once() -> None:
    bells.ring("writes", "ws_1")
    flush()
    bells.flags().delete(QUEUE)
    bells.flags().set(Bell("writes", "ws_1").flag, rung_at("ws_1") - 1000 * (bells.RINGING_SECONDS + 1))

    ringers = [Ringer(), Ringer()]
    for each in ringers:
        each.ring(Bell("writes", "ws_1"))
    for each in ringers:
        each.flush(20)

    assert rung() == 1


def test_the_flag_of_a_bell_that_stays_unheard_does_not_end(briefly: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bells, "FLAG_SECONDS", 100)
    bells.ring("writes", "ws_1")
    flush()
    pass_by()
    monkeypatch.setattr(bells, "FLAG_SECONDS", 1000)

    bells.ring("writes", "ws_1")
    flush()

    assert bells.flags().ttl("bell:writes:ws_1") > 100


def test_what_a_worker_takes_up_is_noted_with_its_time_and_ends_in_a_day() -> None:
    bells.take_up("writes", 123)

    [key] = bells.flags().keys("bells-taken-up:*")
    assert bells.flags().get(key) == b"123"
    assert 0 < bells.flags().ttl(key) <= bells.FLAG_SECONDS


def test_noting_what_was_taken_up_raises_nothing_while_redis_is_away(redis_away: None) -> None:
    with capture_logs() as lines:
        bells.take_up("writes", 123)

    assert "bell.not_noted" in [line["event"] for line in lines]  # threads of other tests may log, too


def test_a_bell_for_new_mail_rings_once_beside_one_for_overdue_mail() -> None:
    bells.ring("writes", "ws_1", Turn.LATE)
    flush()
    bells.ring("writes", "ws_1", Turn.LATE)
    flush()
    assert rung() == 1

    for turn in (Turn.NEW, Turn.NEW, Turn.LATE, Turn.AGAIN):
        bells.ring("writes", "ws_1", turn)
        flush()

    assert rung() == 2


def test_a_late_bell_that_was_lost_rings_again(briefly: None) -> None:
    bells.ring("writes", "ws_1", Turn.LATE)
    flush()
    pass_by()
    bells.ring("writes", "ws_1", Turn.LATE)
    assert rung() == 1

    bells.flags().delete(QUEUE)
    bells.ring("writes", "ws_1", Turn.LATE)

    assert rung() == 1


def test_bells_have_the_places_of_their_turns() -> None:
    for number in range(20):
        bells.ring("writes", f"ws_{number}")
        flush()
    for number in range(40):
        bells.ring("writes", f"ws_again_{number}", Turn.AGAIN)
        flush()
    bells.ring("writes", "ws_late", Turn.LATE)
    bells.ring("writes", "ws_new")
    flush()

    owners = in_line()
    assert (*owners[:2], owners[-1]) == ("ws_0", "ws_late", "ws_new")
    mixed = [owner.startswith("ws_again") for owner in owners[2:-1]]
    assert sum(mixed) == 40
    assert mixed not in (sorted(mixed), sorted(mixed, reverse=True))
    assert [owner for owner in owners if owner[3:].isdigit()] == [f"ws_{number}" for number in range(20)]


def test_a_message_that_a_consumer_is_about_to_fetch_stays_the_first() -> None:
    for turn in (Turn.NEW, Turn.NEW, Turn.LATE, Turn.AGAIN):
        bells.ring("writes", f"ws_{turn.name}", turn)
        flush()
    newest = in_line()[-1]
    bells.flags().lmove(QUEUE, QUEUE, "RIGHT", "LEFT")

    for number in range(20):
        bells.ring("writes", f"ws_{number}", Turn.LATE if number % 2 else Turn.AGAIN)
        flush()

    assert in_line()[0] == newest


def in_line() -> list[str]:
    """The first owner of each message, the oldest first."""
    messages = bells.flags().hgetall(f"{QUEUE}.msgs")
    return [json.loads(messages[each])["args"][0] for each in bells.flags().lrange(QUEUE, 0, -1)]


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


def test_a_bell_that_a_full_redis_refused_rings_when_there_is_room(servers: Servers, redis_full: None) -> None:
    bells.ring("writes", "ws_1")
    flush()
    servers.redis.limit(0)

    bells.ring("writes", "ws_1")

    assert rung_on("writes") == ["ws_1"]


def test_bells_whose_message_could_not_be_sent_ring_as_soon_as_one_can() -> None:
    bells.flags().set(QUEUE, "not a list")  # so their flags are raised, and then sending fails
    bells.ring("writes", "ws_1")
    bells.ring("writes", "ws_2")
    flush()
    bells.flags().delete(QUEUE)

    bells.ring("writes", "ws_1")

    assert rung_on("writes") == ["ws_1"]
    assert not bells.flags().exists(Bell("writes", "ws_2").flag)


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


# RabbitMQ


class Rabbit(RabbitmqBroker):
    """Its queues are in memory, and its connection may be lost."""

    def __init__(self) -> None:
        super().__init__(url="amqp://rabbit.test//", middleware=[])
        self.waiting: list[Message[Any]] = []
        self.is_lost = False

    def enqueue(self, message: Message[Any], *, delay: int | None = None) -> Message[Any]:
        self.waiting.append(message)
        return message

    def get_queue_message_counts(self, queue_name: str) -> tuple[int, int, int]:
        if self.is_lost:
            self.is_lost = False
            raise AMQPConnectionError
        return len([each for each in self.waiting if each.queue_name == queue_name]), 0, 0


@pytest.fixture
def rabbit(monkeypatch: pytest.MonkeyPatch) -> Rabbit:
    rabbit = Rabbit()
    monkeypatch.setattr(brokers, "sending_broker", lambda: rabbit)
    return rabbit


def test_rabbitmq_keeps_one_message_for_a_bell_that_nobody_hears(rabbit: Rabbit, briefly: None) -> None:
    for _ in range(3):
        bells.ring("writes", "ws_1")
        flush()
        pass_by()

    [message] = rabbit.waiting
    assert message.args == ("ws_1",)
    assert message.message_timestamp == rung_at("ws_1")


def test_a_bell_that_rabbitmq_lost_rings_again(rabbit: Rabbit, briefly: None) -> None:
    bells.ring("writes", "ws_1")
    flush()
    rabbit.waiting.clear()
    pass_by()

    bells.ring("writes", "ws_1")
    flush()

    assert len(rabbit.waiting) == 1


def test_where_the_messages_in_rabbitmq_could_not_be_counted_the_next_ring_counts_them(
    rabbit: Rabbit, briefly: None
) -> None:
    bells.ring("writes", "ws_1")
    flush()
    rabbit.waiting.clear()
    rabbit.is_lost = True
    pass_by()

    bells.ring("writes", "ws_1")
    bells.ring("writes", "ws_2")
    flush()
    assert [message.args for message in rabbit.waiting] == [("ws_2",)]

    rabbit.waiting.clear()
    pass_by()
    bells.ring("writes", "ws_1")
    flush()
    assert [message.args for message in rabbit.waiting] == [("ws_1",)]

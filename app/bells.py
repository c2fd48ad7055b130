"""Bells: Dramatiq messages that carry only the names of mailboxes' owners; a lost bell costs seconds, never mail.

A flag in Redis marks a bell that is ringing: no process rings it again until a worker hears it, however long that
takes. So messages never outnumber mailboxes. The flag holds the time at which the bell rang. Queues are first in, first
out: if a worker has taken up a message that rang well after that, or the queue is empty, a bell that still has its flag
was lost, and rings again.

Two kinds of messages are out of turn and say nothing about that: the scheduler's, which rings for overdue mail at the
head of a queue, and the newest, which a consumer takes in every other turn, so that new bells pass a backlog.
"""

from __future__ import annotations

import math
import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from functools import cache

import pika
import redis
import structlog
from dramatiq import Broker, Message
from dramatiq.brokers.rabbitmq import RabbitmqBroker
from dramatiq.brokers.redis import RedisBroker
from pika.exceptions import AMQPError

from app import metrics
from app.config import settings
from app.lib import vitals

log = structlog.get_logger(__name__)

# A bell is lost only if it rang longer ago than this: until then its message may still be on its way.
RINGING_SECONDS = 5
# A flag that no process asks for or clears any more ends after this time; ringing extends it.
FLAG_SECONDS = 86_400
# Under load, the bells of this time ring together. While all of them are ringing already, the time grows.
GATHERING_SECONDS, MOST_GATHERING_SECONDS = 0.02, 0.32
# Bells share messages, because a message costs a worker a millisecond or two. Beyond 16 bells, there are as many
# messages as bells in each, so that several workers share the work.
LEAST_TOGETHER = 4
# The option of a message that was not consumed first in, first out.
OUT_OF_TURN = "out_of_turn"
_QUICK = {"socket_timeout": 0.5, "socket_connect_timeout": 0.5, "retry": None}


@dataclass(frozen=True, slots=True)
class Bell:
    """A mailbox to be rung for: its queue and its owner."""

    queue_name: str
    owner: str

    @property
    def flag(self) -> str:
        """The key in Redis that holds the time at which the bell rang, while it is ringing."""
        return f"bell:{self.queue_name}:{self.owner}"


def ring(queue_name: str, owner: str) -> None:
    """Rings on that queue for `owner`, soon, from a thread of its own. Never waits, never raises."""
    _ringer().ring(Bell(queue_name, owner))


def ring_for_overdue() -> None:
    """From now on, what this process rings for is late already: it takes no place among new bells."""
    _ringer().is_for_overdue = True


def hear(queue_name: str, owners: Sequence[str]) -> None:
    """Clears the flags before the mailboxes are looked into, so that mail that comes later rings again."""
    try:
        flags().delete(*(Bell(queue_name, owner).flag for owner in owners))
    except redis.RedisError as error:
        metrics.REDIS_AWAY.inc()
        log.warning("bell.not_cleared", queue=queue_name, owners=owners, error=str(error))


def take_up(queue_name: str, rung_at: int) -> None:
    """Notes that a worker consumed a message of that queue that rang at this time, in milliseconds. Never raises.

    Any bell that rang well before has been taken up too, or is lost.
    """
    try:
        flags().set(_newest(queue_name), rung_at, ex=FLAG_SECONDS)
    except redis.RedisError as error:
        metrics.REDIS_AWAY.inc()
        log.warning("bell.not_noted", queue=queue_name, error=str(error))


def flush(timeout_seconds: float = 1.0) -> None:
    """Waits until all bells are on their way; for processes that are about to end."""
    _ringer().flush(timeout_seconds)


def ping() -> None:
    """Raises redis.RedisError or ConnectionError if Redis or the broker does not answer."""
    flags().ping()
    broker = sending_broker()
    if isinstance(broker, RedisBroker):
        broker.client.ping()
    elif isinstance(broker, RabbitmqBroker):
        try:
            # By a connection of its own: RabbitMQ ends idle ones, and this thread may have rung long ago.
            pika.BlockingConnection(broker.parameters).close()
        except (AMQPError, OSError) as error:
            raise ConnectionError(f"RabbitMQ does not answer: {error!r}") from error


@cache
def flags() -> redis.Redis:
    """The client for flags, limits and live updates."""
    return quick_client(settings().redis_url)


def quick_client(url: str) -> redis.Redis:
    """A client that waits half a second at most, and tries nothing twice."""
    # No retries: a script whose answer was lost may have run.
    return redis.Redis.from_url(url, **_QUICK)


class Ringer:
    """A thread that rings at once if it is idle, else for all bells that have gathered since it last rang."""

    def __init__(self) -> None:
        self.is_for_overdue = False
        self._pending: set[Bell] = set()
        self._ringing: set[Bell] = set()
        self._unheard: Set[Bell] = set()  # of the last batch, those that were ringing already
        self._changed = threading.Condition()
        vitals.start(self._run, "bells")

    def ring(self, bell: Bell) -> None:
        """Rings soon. Never waits."""
        if bell not in self._pending:
            with self._changed:
                self._pending.add(bell)
                self._changed.notify_all()

    def flush(self, timeout_seconds: float) -> None:
        """Waits until every bell asked for so far is on its way, or the time is over."""
        with self._changed:
            self._changed.wait_for(lambda: not self._pending and not self._ringing, timeout_seconds)

    def _run(self) -> None:
        pause = 0.0
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._pending - self._unheard, pause)
                self._changed.wait_for(lambda: self._pending)
                # Cleared before they ring: mail that arrives while they do is rung for as well.
                self._ringing, self._pending = self._pending, set()
            self._unheard = self._ring_all(self._ringing)
            any_new = self._unheard != self._ringing
            pause = 0.0 if any_new else min(2 * pause + GATHERING_SECONDS, MOST_GATHERING_SECONDS)
            with self._changed:
                self._ringing = set()
                self._changed.notify_all()
            time.sleep(GATHERING_SECONDS)

    def _ring_all(self, bells: Set[Bell]) -> Set[Bell]:
        """Returns those that were ringing already, or could not be rung."""
        by_queue: dict[str, list[Bell]] = defaultdict(list)
        for bell in bells:
            by_queue[bell.queue_name].append(bell)
        return bells - {bell for queue_name, those in by_queue.items() for bell in _ring_on(queue_name, those)}


def _ring_on(queue_name: str, bells: Sequence[Bell]) -> Sequence[Bell]:
    """Rings those of a queue's bells that are not ringing, or were lost; returns them."""
    try:
        rung_at, silent, old = _raise_flags(queue_name, bells)
        if old and _is_empty(queue_name):
            silent += _raise_flags(queue_name, old, all_lost=True)[1]
        for together in _by_message(silent):
            _send(queue_name, together, rung_at)
        metrics.BELLS.labels("rung").inc(len(silent))
        return silent
    except Exception as error:  # whatever a broker raises: the scheduler will ring
        metrics.REDIS_AWAY.inc()
        metrics.BELLS.labels("lost").inc(len(bells))
        log.warning("bells.lost", queue=queue_name, bells=len(bells), error=str(error))
        return []


# By the clock of Redis, so that those of the processes need not agree. Sets the flags of bells that are silent or lost.
# Answers with the time, and for each bell: 1, its flag was set; 2, it rang long ago; 0, it rang just now.
_RAISE = """
local time = redis.call('TIME')
local now, newest = time[1] * 1000 + math.floor(time[2] / 1000), tonumber(redis.call('GET', KEYS[1]) or 0)
local ringing, keep, all_lost = tonumber(ARGV[1]), ARGV[2], ARGV[3] == '1'
local answer = {now}
for place = 2, #KEYS do
    local rung = tonumber(redis.call('GET', KEYS[place]) or 0)
    if now - rung <= ringing then
        answer[place] = 0
    elseif rung == 0 or all_lost or newest - rung > ringing then
        redis.call('SET', KEYS[place], now, 'EX', keep)
        answer[place] = 1
    else
        redis.call('EXPIRE', KEYS[place], keep)
        answer[place] = 2
    end
end
return answer
"""


def _raise_flags(
    queue_name: str, bells: Sequence[Bell], *, all_lost: bool = False
) -> tuple[int, list[Bell], list[Bell]]:
    """Returns the time, in milliseconds, the bells whose flags were set, and those that are lost if the queue is empty.

    `all_lost`: it is empty.
    """
    keys = [_newest(queue_name), *(bell.flag for bell in bells)]
    limits = [int(RINGING_SECONDS * 1000), FLAG_SECONDS, int(all_lost)]
    rung_at, *found = flags().eval(_RAISE, len(keys), *keys, *limits)
    silent = [bell for bell, state in zip(bells, found, strict=True) if state == 1]
    old = [bell for bell, state in zip(bells, found, strict=True) if state == 2]
    return rung_at, silent, old


def _newest(queue_name: str) -> str:
    return f"bells-taken-up:{queue_name}"


def _is_empty(queue_name: str) -> bool:
    """Whether no message waits in the queue."""
    broker = sending_broker()
    if isinstance(broker, RabbitmqBroker):
        try:
            # Makes the queue where it is gone: what is sent to one that does not exist is dropped.
            return broker.get_queue_message_counts(queue_name)[0] == 0
        except AMQPError as error:
            # RabbitMQ ends connections that were idle. The next call makes another.
            del broker.connection
            log.info("bells.queue_not_counted", queue=queue_name, error=repr(error))
            return False
    return broker.client.llen(f"{broker.namespace}:{queue_name}") == 0  # type: ignore[attr-defined,no-any-return]


def _by_message(bells: Sequence[Bell]) -> Iterator[Sequence[Bell]]:
    size = max(LEAST_TOGETHER, math.isqrt(len(bells)))
    return (bells[start : start + size] for start in range(0, len(bells), size))


def _send(queue_name: str, together: Sequence[Bell], rung_at: int) -> None:
    # The actor of a queue has the queue's name; that is all the sender needs to know of it.
    message: Message[None] = Message(
        queue_name=queue_name,
        actor_name=queue_name,
        args=tuple(bell.owner for bell in together),
        kwargs={},
        options={OUT_OF_TURN: True} if _ringer().is_for_overdue else {},
        message_timestamp=rung_at,
    )
    broker = sending_broker()
    if _ringer().is_for_overdue and isinstance(broker, RedisBroker):
        _send_as_oldest(broker, message)
    else:
        broker.enqueue(message)


def _send_as_oldest(broker: RedisBroker, message: Message[None]) -> None:
    """What `enqueue` does, but at the head of the queue."""
    message_id = str(uuid.uuid4())
    data = message.copy(options={"redis_message_id": message_id}).encode()
    key = f"{broker.namespace}:{message.queue_name}"
    with broker.client.pipeline(transaction=True) as together:
        together.hset(f"{key}.msgs", message_id, data)
        together.lpush(key, message_id)
        together.execute()


@cache
def sending_broker() -> Broker:
    """The broker that bells are sent by, as quick as `quick_client` and without middleware."""
    url = settings().broker_url
    if url.startswith("amqp"):
        broker = RabbitmqBroker(url=url, middleware=[])
        for name in ("socket_timeout", "stack_timeout", "blocked_connection_timeout"):
            setattr(broker.parameters, name, _QUICK["socket_timeout"])
        return broker
    return RedisBroker(client=quick_client(url), middleware=[])


@cache
def _ringer() -> Ringer:
    return Ringer()
